#pragma once

#include <cstdint>

#include <mambatile/conv1d.hpp>

// The step of decoding in its usual form: four taps, a state of the three inputs before, stored
// channel by channel. The window stays in registers; nothing is staged.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

inline constexpr std::int64_t step_width = 4;

/// One row and whole packs of channels.
///   x, out (tokens, channels), pitches in elements, inner strides 1; source, target (channels, 3),
///   dense, null = zeros and nowhere, may be the same; weights (4, weight_pitch), bias (channels)
///   f32.
template <class Element, class State>
struct conv1d_step {
  Element const* x;
  std::int64_t x_pitch;
  Element* out;
  std::int64_t out_pitch;
  State const* source;
  State* target;
  float const* weights;
  std::int64_t weight_pitch;
  float const* bias;
  std::int64_t tokens;
  std::int64_t channels;
  activation act;
};

/// False where the compiler has no shuffles: then it must not be called.
[[nodiscard]] bool has_conv1d_step() noexcept;

template <class Element, class State>
void run_conv1d_step(conv1d_step<Element, State> const& step) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
