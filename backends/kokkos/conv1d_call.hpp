#pragma once

#include <cstddef>
#include <cstdint>

#include <mambatile/conv1d.hpp>

#include "conv1d_forms.hpp"
#include "simd.hpp"
#include "tuning_conv1d.hpp"

// One call of a convolution, and the scratch of one share of it.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

inline constexpr conv1d_tuning conv1d_tuned = conv1d_tuning_for(pack_width);

/// The axis that x and out are vectorised along.
enum class conv1d_order : std::uint8_t {
  channels,  ///< stride 1 along channels
  tokens,    ///< stride 1 along tokens
  neither,   ///< brought into order piece by piece
};

struct conv1d_call {
  conv1d_update_problem const& problem;
  conv1d_update_arguments arguments;  ///< x and out have their token axis
  conv1d_order order;
};

/// A range of channels [begin, end).
struct channel_range {
  std::int64_t begin;
  std::int64_t end;
};

/// Sizes of a share's scratch, fixed when planning.
struct conv1d_scratch_shape {
  std::int64_t channels;  ///< of the weights, a multiple of pack_width
  std::int64_t history;   ///< rows of the line before its tokens: max(state_len, width - 1)
  std::int64_t tokens;  ///< rows of the line for tokens; at least `history`, for a state's columns

  explicit conv1d_scratch_shape(conv1d_update_problem const& problem) noexcept;
  [[nodiscard]] std::size_t bytes(conv1d_update_problem const& problem) const noexcept;
};

/// Scratch of one share. Rows of channels are `block` apart and hold f32.
struct conv1d_scratch {
  conv1d_scratch_shape shape;
  float* weights;        ///< (width, channels), transposed
  float* bias;           ///< (channels)
  float* line;           ///< (history + tokens, block): raw inputs, oldest first
  float* results;        ///< (tokens, block): outputs that still have to be put in order
  std::int64_t* places;  ///< (history): where a window or a state comes from

  conv1d_scratch(conv1d_scratch_shape const& of, conv1d_update_problem const& problem,
                 void* memory) noexcept;
};

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
