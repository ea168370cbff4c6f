#pragma once

#include <cstdint>

// Numbers of the chunked scan that were found by measuring, one row per vector width. Algorithms
// hold none of their own.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

struct scan_tuning {
  int pack_width;    ///< row's key: f32 lanes of a register
  int tile_rows;     ///< rows of a register tile
  int product_rows;  ///< most rows of a product tile, no more than tile_rows, and no more than 12:
                     ///< its left factor keeps a pointer for every third of them
  int tile_vectors;  ///< registers a tile is wide; also the width of a panel of the state
  int chunk;         ///< tokens of a chunk
  int single_chunk;  ///< longest sequence that is one chunk when it starts from a zero state
  int sequential;    ///< longest piece that is done token by token
  std::int64_t block_bytes;  ///< states that a thread keeps moving at a time: its share of L2
};

// AVX-512: Sapphire Rapids, 2 MiB L2, 2026-12. AVX2: 16 registers; unmeasured but for the tile.
// NEON and scalar: unmeasured.
inline constexpr scan_tuning scan_tunings[] = {
    {16, 12, 12, 2, 32, 128, 8, 1 << 20},
    {8, 6, 6, 2, 24, 128, 8, 1 << 18},
    {4, 12, 12, 2, 24, 128, 8, 1 << 18},
    {1, 4, 4, 2, 16, 64, 8, 1 << 17},
};

[[nodiscard]] constexpr scan_tuning const& scan_tuning_for(int width) noexcept {
  for (auto const& row : scan_tunings) {
    if (row.pack_width == width) return row;
  }
  return scan_tunings[3];
}

/// Largest chunk that a hint can ask for; a chunk's products grow with its square.
inline constexpr int largest_chunk = 256;

/// A chunk whose total |sum of delta A| stays below this may factor exp(a_i - a_j) into
/// exp(a_i) exp(-a_j): the second factor is then below e^40 = 2.4e17, which leaves f32 a range of
/// 1e21 for what it multiplies.
inline constexpr double factoring_bound = 40.0;

/// Tokens' worth of work that a sequence costs beside its tokens, for balancing: reading and
/// writing its state. Per head and thread that is 8 N P bytes at 18 GB/s against 4 N P operations a
/// token at 60 GFLOP/s (Sapphire Rapids, 2026-12), whatever N and P.
inline constexpr std::int64_t sequence_overhead = 6;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
