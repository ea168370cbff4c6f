#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "convert.hpp"
#include "norm_rows.hpp"
#include "operator_plan.hpp"
#include "operators.hpp"
#include "runtime.hpp"
#include "shares.hpp"
#include "simd.hpp"
#include "strided_rows.hpp"
#include "tuning_norm.hpp"
#include "unroll.hpp"
#include "vector_math.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

constexpr norm_tuning tuning = norm_tuning_for(pack_width);

enum class gating : std::uint8_t { none, before_norm, after_norm };

// One group of one row. weight, bias and values (scratch) are f32, the rest is of the io type.
template <class Element>
struct norm_group {
  Element const* x;
  Element const* z;
  float const* weight;
  float const* bias;
  float* values;
  Element* out;
  std::int64_t channels;
  float eps;
};

// visit.operator()<Full>(first channel, how many, number of the pack) for all packs of a group.
template <class Visit>
MAMBATILE_ALWAYS_INLINE inline void for_each_pack(std::int64_t channels, Visit const& visit) {
  constexpr std::int64_t stride = std::int64_t{tuning.sums} * pack_width;
  std::int64_t c = 0;
  for (; c + stride <= channels; c += stride) {
    unroll<tuning.sums>([&](auto i) MAMBATILE_ALWAYS_INLINE {
      visit.template operator()<true>(c + i * pack_width, pack_width, i);
    });
  }
  for (; c + pack_width <= channels; c += pack_width) {
    visit.template operator()<true>(c, pack_width, std::integral_constant<int, 0>{});
  }
  if (c < channels) {
    visit.template operator()<false>(c, static_cast<int>(channels - c),
                                     std::integral_constant<int, 0>{});
  }
}

template <bool Full, class Element>
MAMBATILE_ALWAYS_INLINE inline pack load_part(Element const* from, int count) noexcept {
  if constexpr (Full) {
    return load(from);
  } else {
    return load_first(from, count);
  }
}

// Below this mean, squares that f32 lost (each less than 2^-126) may be more than its rounding.
constexpr float least_mean = 1e-30F;

// A group whose sum of squares f32 cannot hold, in f64. Rare, so plain.
template <gating Gate, class Element>
[[gnu::noinline, gnu::cold]] void run_group_in_double(norm_group<Element> const& group) noexcept {
  auto const gate = [&](std::int64_t c) {
    auto const z = static_cast<double>(static_cast<float>(group.z[c]));
    return z / (1.0 + std::exp(-z));
  };
  auto const value = [&](std::int64_t c) {
    auto const x = static_cast<double>(static_cast<float>(group.x[c]));
    if constexpr (Gate == gating::before_norm) return x * gate(c);
    return x;
  };
  double sum = 0.0;
  for (std::int64_t c = 0; c < group.channels; ++c) sum += value(c) * value(c);
  double const mean = sum / static_cast<double>(group.channels) + static_cast<double>(group.eps);
  // Only zeros, and eps = 0: any finite scale gives zeros.
  double const scale = mean == 0.0 ? 0.0 : 1.0 / std::sqrt(mean);
  for (std::int64_t c = 0; c < group.channels; ++c) {
    double normed = value(c) * scale * static_cast<double>(group.weight[c]) +
                    static_cast<double>(group.bias[c]);
    if constexpr (Gate == gating::after_norm) normed *= gate(c);
    group.out[c] = static_cast<Element>(static_cast<float>(normed));
  }
}

template <gating Gate, class Element>
void run_group(norm_group<Element> const& group) noexcept {
  pack sums[std::size_t{tuning.sums}];
  unroll<tuning.sums>([&](auto i) MAMBATILE_ALWAYS_INLINE { sums[i] = pack(0.0F); });
  for_each_pack(group.channels,
                [&]<bool Full>(std::int64_t c, int count, auto i) MAMBATILE_ALWAYS_INLINE {
                  pack value = load_part<Full>(group.x + c, count);
                  if constexpr (Gate == gating::before_norm) {
                    value = value * silu(load_part<Full>(group.z + c, count));
                    store(group.values + c, value);
                  }
                  sums[i] = fma(value, value, sums[i]);
                });
  pack sum = sums[0];
  for (int i = 1; i < tuning.sums; ++i) sum = sum + sums[i];
  float const mean = sum_of_lanes(sum) / static_cast<float>(group.channels) + group.eps;
  if (!(mean >= least_mean && mean <= std::numeric_limits<float>::max())) {
    return run_group_in_double<Gate>(group);
  }
  pack const scale(1.0F / std::sqrt(mean));

  for_each_pack(group.channels,
                [&]<bool Full>(std::int64_t c, int count, auto) MAMBATILE_ALWAYS_INLINE {
                  pack value;
                  if constexpr (Gate == gating::before_norm) {
                    value = load(group.values + c);
                  } else {
                    value = load_part<Full>(group.x + c, count);
                  }
                  value = fma(value * scale, load_part<Full>(group.weight + c, count),
                              load_part<Full>(group.bias + c, count));
                  if constexpr (Gate == gating::after_norm) {
                    value = value * silu(load_part<Full>(group.z + c, count));
                  }
                  if constexpr (Full) {
                    store(group.out + c, value);
                  } else {
                    store_first(group.out + c, value, count);
                  }
                });
}

class gated_rms_norm_plan_implementation final
    : public detail::plan_implementation<gated_rms_norm_problem> {
 public:
  explicit gated_rms_norm_plan_implementation(gated_rms_norm_problem const& problem)
      : problem_(problem), threads_(plan_threads(problem.threads)) {
    gate_ = !problem.has_z ? gating::none
                           : (problem.norm_before_gate ? gating::after_norm : gating::before_norm);
    description_ = fmt::format("kokkos {} threads={}", pack_abi_name, threads_);
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return share_bytes() * static_cast<std::size_t>(threads_);
  }
  [[nodiscard]] std::string_view description() const noexcept override { return description_; }
  [[nodiscard]] int threads() const noexcept override { return threads_; }

  void execute(gated_rms_norm_arguments const& arguments, workspace_view workspace,
               queue const& on) const override {
    if (problem_.channels == 0) return;
    auto const groups = problem_.channels / group_size();
    auto const total = detail::norm_rows(arguments.x) * groups;
    if (total == 0) return;
    int const shares = useful_shares(total * group_size(), on.threads == 0 ? threads_ : on.threads,
                                     tuning.share_values);
    for_each_share(shares, [&](int share) noexcept {
      auto* const memory =
          static_cast<char*>(workspace.data) + static_cast<std::size_t>(share) * share_bytes();
      auto const range = range_of_share(total, shares, share);
      visit_type(problem_.io, [&]<class Element>(Element const*) {
        switch (gate_) {
          case gating::none: run<gating::none, Element>(arguments, range, memory); break;
          case gating::before_norm:
            run<gating::before_norm, Element>(arguments, range, memory);
            break;
          case gating::after_norm:
            run<gating::after_norm, Element>(arguments, range, memory);
            break;
        }
      });
    });
  }

 private:
  [[nodiscard]] std::int64_t group_size() const noexcept {
    return problem_.group_size == 0 ? problem_.channels : problem_.group_size;
  }

  // weight, bias, and a group's gated values in whole packs.
  [[nodiscard]] std::size_t share_bytes() const noexcept {
    return detail::round_to_alignment(static_cast<std::size_t>(3 * problem_.channels + pack_width) *
                                      sizeof(float));
  }

  // Groups [begin, end), counted through all rows.
  template <gating Gate, class Element>
  void run(gated_rms_norm_arguments const& arguments, work_range const& range,
           void* memory) const noexcept {
    auto const channels = problem_.channels;
    auto* const weight = static_cast<float*>(memory);
    auto* const bias = weight + channels;
    auto* const values = bias + channels;
    auto const size = group_size();
    auto const groups = channels / size;
    stage_row(arguments.weight, 0, arguments.weight.stride(0), channels, weight);
    if (problem_.has_bias) {
      stage_row(arguments.bias, 0, arguments.bias.stride(0), channels, bias);
    } else {
      std::fill_n(bias, channels, 0.0F);
    }
    for (auto each = range.begin; each < range.end; ++each) {
      auto const row = each / groups;
      auto const c = each % groups * size;
      auto const at = [&](auto const& view) { return detail::norm_row_offset(view, row) + c; };
      norm_group<Element> group{};
      group.x = static_cast<Element const*>(arguments.x.data) + at(arguments.x);
      if constexpr (Gate != gating::none) {
        group.z = static_cast<Element const*>(arguments.z.data) + at(arguments.z);
      }
      group.weight = weight + c;
      group.bias = bias + c;
      group.values = values;
      group.out = static_cast<Element*>(arguments.out.data) + at(arguments.out);
      group.channels = size;
      group.eps = problem_.eps;
      run_group<Gate>(group);
    }
  }

  gated_rms_norm_problem problem_;
  int threads_;
  gating gate_ = gating::none;
  std::string description_;
};

}  // namespace

std::shared_ptr<detail::plan_implementation<gated_rms_norm_problem> const> make_gated_rms_norm_plan(
    gated_rms_norm_problem const& problem) {
  return std::make_shared<gated_rms_norm_plan_implementation const>(problem);
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
