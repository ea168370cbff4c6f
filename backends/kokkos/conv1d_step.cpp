#include "conv1d_step.hpp"

#include <bit>
#include <cstdint>
#include <utility>

#include "convert.hpp"
#include "simd.hpp"
#include "transpose.hpp"
#include "unroll.hpp"
#include "vector_math.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {

#ifdef MAMBATILE_HAS_SHUFFLE

namespace {

using vector = float __attribute__((vector_size(sizeof(pack))));
constexpr auto lanes = std::make_integer_sequence<int, pack_width>{};

// Lane i of the result: element 3 i + Row of the three packs in a row.
template <int Row, int... Lane>
MAMBATILE_ALWAYS_INLINE inline pack every_third(pack const& a, pack const& b, pack const& c,
                                                std::integer_sequence<int, Lane...>) {
  constexpr int ab = 2 * pack_width;
  auto const low = __builtin_shufflevector(std::bit_cast<vector>(a), std::bit_cast<vector>(b),
                                           (3 * Lane + Row < ab ? 3 * Lane + Row : 0)...);
  return std::bit_cast<pack>(
      __builtin_shufflevector(low, std::bit_cast<vector>(c),
                              (3 * Lane + Row < ab ? Lane : pack_width + 3 * Lane + Row - ab)...));
}

// Pack Part of the three that hold the rows' elements in turn.
template <int Part, int... Lane>
MAMBATILE_ALWAYS_INLINE inline pack in_turn(pack const& a, pack const& b, pack const& c,
                                            std::integer_sequence<int, Lane...>) {
  constexpr int first = Part * pack_width;
  auto const two =
      __builtin_shufflevector(std::bit_cast<vector>(a), std::bit_cast<vector>(b),
                              ((first + Lane) / 3 + ((first + Lane) % 3 == 1 ? pack_width : 0))...);
  return std::bit_cast<pack>(__builtin_shufflevector(
      two, std::bit_cast<vector>(c),
      ((first + Lane) % 3 == 2 ? pack_width + (first + Lane) / 3 : Lane)...));
}

}  // namespace

bool has_conv1d_step() noexcept { return true; }

template <class Element, class State>
void run_conv1d_step(conv1d_step<Element, State> const& step) noexcept {
  bool const is_silu = step.act == activation::silu;
  for (std::int64_t c = 0; c < step.channels; c += pack_width) {
    pack before[3] = {pack(0.0F), pack(0.0F), pack(0.0F)};
    if (step.source != nullptr) {
      auto const* const from = step.source + 3 * c;
      pack const p0 = load(from), p1 = load(from + pack_width), p2 = load(from + 2 * pack_width);
      before[0] = every_third<0>(p0, p1, p2, lanes);
      before[1] = every_third<1>(p0, p1, p2, lanes);
      before[2] = every_third<2>(p0, p1, p2, lanes);
    }
    pack weights[step_width];
    unroll<step_width>([&](auto k) MAMBATILE_ALWAYS_INLINE {
      weights[k] = load(step.weights + k * step.weight_pitch + c);
    });
    pack const bias = load(step.bias + c);
    for (std::int64_t token = 0; token < step.tokens; ++token) {
      pack const now = load(step.x + token * step.x_pitch + c);
      pack sum = fma(weights[0], before[0], bias);
      sum = fma(weights[1], before[1], sum);
      sum = fma(weights[2], before[2], sum);
      sum = fma(weights[3], now, sum);
      store(step.out + token * step.out_pitch + c, is_silu ? silu(sum) : sum);
      before[0] = before[1];
      before[1] = before[2];
      before[2] = now;
    }
    if (step.target != nullptr) {
      auto* const to = step.target + 3 * c;
      store(to, in_turn<0>(before[0], before[1], before[2], lanes));
      store(to + pack_width, in_turn<1>(before[0], before[1], before[2], lanes));
      store(to + 2 * pack_width, in_turn<2>(before[0], before[1], before[2], lanes));
    }
  }
}

#else

bool has_conv1d_step() noexcept { return false; }

template <class Element, class State>
void run_conv1d_step(conv1d_step<Element, State> const& /*step*/) noexcept {}

#endif

template void run_conv1d_step(conv1d_step<float, float> const&) noexcept;
template void run_conv1d_step(conv1d_step<bfloat16, bfloat16> const&) noexcept;
template void run_conv1d_step(conv1d_step<bfloat16, float> const&) noexcept;
template void run_conv1d_step(conv1d_step<float16, float16> const&) noexcept;
template void run_conv1d_step(conv1d_step<float16, float> const&) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
