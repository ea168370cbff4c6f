#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/state_update.hpp>

#include "backend_implementation.hpp"
#include "operator_plan.hpp"
#include "operators.hpp"
#include "runtime.hpp"
#include "simd.hpp"
#include "state_update_call.hpp"
#include "state_update_forms.hpp"
#include "tuning_state_update.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

constexpr state_update_tuning const& tuning = state_update_tuning_for(pack_width);

// A part: one head of a row, or with few heads some of its channels.
struct part_split {
  std::int64_t parts_of_head;
  std::int64_t channels_of_part;
};

[[nodiscard]] part_split split_heads(std::int64_t heads, std::int64_t headdim,
                                     int shares) noexcept {
  constexpr std::int64_t enough_per_share = 8;
  auto const packs = std::max<std::int64_t>(1, (headdim + pack_width - 1) / pack_width);
  if (shares <= 1 || heads >= enough_per_share * shares) return {1, headdim};
  auto const wanted = std::clamp<std::int64_t>(
      (enough_per_share * shares + heads - 1) / std::max<std::int64_t>(heads, 1), 1, packs);
  auto const packs_of_part = (packs + wanted - 1) / wanted;
  return {(packs + packs_of_part - 1) / packs_of_part, packs_of_part * pack_width};
}

void clear_out(state_update_problem const& problem, tensor_view const& out,
               std::int64_t row) noexcept {
  auto const element = static_cast<std::int64_t>(size_of(out.type));
  for (std::int64_t token = 0; token < out.extent(1); ++token) {
    for (std::int64_t h = 0; h < problem.nheads; ++h) {
      auto const offset = row * out.stride(0) + token * out.stride(1) + h * out.stride(2);
      std::fill_n(static_cast<char*>(out.data) + offset * element, problem.headdim * element, '\0');
    }
  }
}

class state_update_plan_implementation final
    : public detail::plan_implementation<state_update_problem> {
 public:
  explicit state_update_plan_implementation(state_update_problem const& problem)
      : problem_(problem), threads_(plan_threads(problem.threads)) {
    update_scratch unused{};
    share_bytes_ = detail::round_to_alignment(cut_update_scratch(problem, nullptr, unused));
    description_ = fmt::format("kokkos {} state_update state={} threads={}", pack_abi_name,
                               to_string(problem.state), threads_);
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return share_bytes_ * static_cast<std::size_t>(threads_);
  }
  [[nodiscard]] std::string_view description() const noexcept override { return description_; }
  [[nodiscard]] int threads() const noexcept override { return threads_; }

  void execute(state_update_arguments const& given, workspace_view workspace,
               queue const& on) const override {
    // A copy would be new to the other threads' caches in every call.
    state_update_arguments widened;
    if (given.x.rank == 3) widened = detail::with_token_axis(given);
    auto const& arguments = given.x.rank == 3 ? widened : given;
    auto const batch = arguments.x.extent(0);
    std::int64_t rows = batch;
    for (std::int64_t row = 0; problem_.skip_padding && row < batch; ++row) {
      if (detail::is_padding(problem_, arguments, row)) --rows;
    }
    int const shares = on.threads == 0 ? threads_ : on.threads;
    auto const split = split_heads(rows * problem_.nheads, problem_.headdim, shares);
    auto const parts_of_row = problem_.nheads * split.parts_of_head;
    auto const parts = rows * parts_of_row;
    auto const state_bytes = rows * problem_.nheads * problem_.headdim * problem_.dstate *
                             static_cast<std::int64_t>(size_of(problem_.state));
    bool const prefetch = state_bytes > tuning.hot_bytes * shares;

    for_each_share(shares, [&](int share) noexcept {
      auto const begin = parts * share / shares;
      auto const end = parts * (share + 1) / shares;
      update_worker worker(
          problem_, arguments,
          static_cast<char*>(workspace.data) + static_cast<std::size_t>(share) * share_bytes_,
          prefetch);
      std::int64_t first_of_row = 0;  // among the parts of rows that are no padding
      for (std::int64_t row = 0; row < batch; ++row) {
        if (problem_.skip_padding && detail::is_padding(problem_, arguments, row)) {
          if (row % shares == share) clear_out(problem_, arguments.out, row);
          continue;
        }
        run_row(worker, row, split, std::max(begin - first_of_row, std::int64_t{0}),
                std::min(end - first_of_row, parts_of_row));
        first_of_row += parts_of_row;
      }
    });
  }

 private:
  // Parts [begin, end) of a row; may be none.
  void run_row(update_worker& worker, std::int64_t row, part_split const& split, std::int64_t begin,
               std::int64_t end) const noexcept {
    if (begin >= end) return;
    worker.start_row(row, begin / split.parts_of_head, (end - 1) / split.parts_of_head + 1);
    for (std::int64_t part = begin; part < end; ++part) {
      auto const first = part % split.parts_of_head * split.channels_of_part;
      worker.run({row, part / split.parts_of_head, first,
                  std::min(first + split.channels_of_part, problem_.headdim)});
    }
  }

  state_update_problem problem_;
  int threads_;
  std::size_t share_bytes_ = 0;
  std::string description_;
};

}  // namespace

support state_update_support(state_update_problem const& /*problem*/) { return {true, {}}; }

std::shared_ptr<detail::plan_implementation<state_update_problem> const> make_state_update_plan(
    state_update_problem const& problem) {
  return std::make_shared<state_update_plan_implementation const>(problem);
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
