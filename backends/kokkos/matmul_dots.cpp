#include <algorithm>
#include <cstdint>

#include "convert.hpp"
#include "matmul_kernels.hpp"
#include "scan_pack.hpp"
#include "tuning_matmul.hpp"
#include "unroll.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

[[nodiscard]] std::int64_t whole_packs(std::int64_t count) noexcept {
  return (count + pack_width - 1) / pack_width * pack_width;
}

// sums[r][o] of `Rows` rows of x (f32, whole packs) and `Outputs` rows of the weight. What lies
// `ahead` elements further is asked for meanwhile.
template <int Outputs, int Rows, class Element>
void dot_tile(float const* x, std::int64_t x_pitch, Element const* weight,
              std::int64_t weight_stride, std::int64_t ahead, std::int64_t count, float* sums,
              std::int64_t sums_pitch) noexcept {
  pack products[static_cast<std::size_t>(Rows)][static_cast<std::size_t>(Outputs)];
  unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE {
    unroll<Outputs>([&](auto o) MAMBATILE_ALWAYS_INLINE { products[r][o] = pack(0.0F); });
  });
  auto const step = [&](std::int64_t k, auto const& load_weight) MAMBATILE_ALWAYS_INLINE {
    pack rows[static_cast<std::size_t>(Rows)];
    unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE { rows[r] = load(x + r * x_pitch + k); });
    unroll<Outputs>([&](auto o) MAMBATILE_ALWAYS_INLINE {
      __builtin_prefetch(weight + o * weight_stride + k + ahead, 0, 2);
      pack const factor = load_weight(weight + o * weight_stride + k);
      unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE {
        products[r][o] = fma(rows[r], factor, products[r][o]);
      });
    });
  };
  std::int64_t k = 0;
  for (; k + pack_width <= count; k += pack_width) {
    step(k, [](Element const* from) MAMBATILE_ALWAYS_INLINE { return load(from); });
  }
  if (k < count) {
    step(k, [&](Element const* from) { return load_first(from, static_cast<int>(count - k)); });
  }
  unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE {
    unroll<Outputs>([&](auto o) MAMBATILE_ALWAYS_INLINE {
      sums[r * sums_pitch + o] = sum_of_lanes(products[r][o]);
    });
  });
}

template <int Outputs, class Element>
void dot_rows(float const* x, std::int64_t x_pitch, std::int64_t rows, Element const* weight,
              std::int64_t weight_stride, std::int64_t ahead, std::int64_t count, float* sums,
              std::int64_t sums_pitch) noexcept {
  std::int64_t row = 0;
  for (; row + dot_row_group <= rows; row += dot_row_group) {
    dot_tile<Outputs, dot_row_group>(x + row * x_pitch, x_pitch, weight, weight_stride, ahead,
                                     count, sums + row * sums_pitch, sums_pitch);
  }
  for (; row < rows; ++row) {
    dot_tile<Outputs, 1>(x + row * x_pitch, x_pitch, weight, weight_stride, ahead, count,
                         sums + row * sums_pitch, sums_pitch);
  }
}

}  // namespace

std::int64_t dot_scratch(matmul_problem const& problem) noexcept {
  auto const rows = std::min(problem.max_rows, matmul_tuned.dot_rows);
  return rows * (whole_packs(problem.in_features) + whole_packs(dot_outputs));
}

void run_dots(matmul_part const& part, float* scratch) noexcept {
  auto const& problem = part.problem;
  auto const& x = part.arguments.x;
  auto const& weight = part.arguments.weight;
  auto const rows = x.extent(0);
  auto const inner = problem.in_features;
  auto const x_pitch = whole_packs(inner);
  auto const sums_pitch = whole_packs(dot_outputs);
  float* const sums = scratch + rows * x_pitch;
  visit_type(problem.x, [&]<class Element>(Element const*) {
    pack_rows(static_cast<Element const*>(x.data), x.stride(0), rows, inner, scratch, x_pitch);
  });
  visit_type(problem.weight, [&]<class Element>(Element const*) {
    auto const stride = weight.stride(0);
    std::int64_t o = part.first_output;
    auto const* from = static_cast<Element const*>(weight.data) + o * stride;
    for (; o + dot_outputs <= part.last_output; o += dot_outputs, from += dot_outputs * stride) {
      auto const rows_ahead =
          std::min<std::int64_t>(matmul_tuned.rows_ahead, part.last_output - o - dot_outputs);
      dot_rows<dot_outputs>(scratch, x_pitch, rows, from, stride, rows_ahead * stride, inner, sums,
                            sums_pitch);
      finish_outputs(part, 0, rows, o, dot_outputs, sums, sums_pitch);
    }
    for (; o < part.last_output; ++o, from += stride) {
      dot_rows<1>(scratch, x_pitch, rows, from, stride, 0, inner, sums, sums_pitch);
      finish_outputs(part, 0, rows, o, 1, sums, sums_pitch);
    }
  });
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
