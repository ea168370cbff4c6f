#pragma once

#include <cstdint>

// Numbers of the convolution that were found by measuring, one row per vector width. Algorithms
// hold none of their own.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

struct conv1d_tuning {
  int pack_width;              ///< row's key: f32 lanes of a register
  int token_tile;              ///< outputs of one channel pack that share a window in registers
  int staged_tokens;           ///< tokens that are brought into the fast order at a time
  std::int64_t block;          ///< channels that are staged at a time: the stage stays in L1
  std::int64_t share_outputs;  ///< least work that pays for a thread
  std::int64_t share_tokens;   ///< fewer tokens per thread than this: threads split the channels
};

// AVX-512: Sapphire Rapids, 48 KiB L1, 2026-12. The others: unmeasured; the window of a tile, its
// weights and the activation fit their registers.
inline constexpr conv1d_tuning conv1d_tunings[] = {
    {16, 8, 16, 256, 4096, 32},
    {8, 4, 16, 256, 4096, 32},
    {4, 8, 16, 256, 4096, 32},
    {1, 4, 16, 64, 4096, 32},
};

[[nodiscard]] constexpr conv1d_tuning const& conv1d_tuning_for(int width) noexcept {
  for (auto const& row : conv1d_tunings) {
    if (row.pack_width == width) return row;
  }
  return conv1d_tunings[3];
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
