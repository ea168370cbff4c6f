#pragma once

#include <cstdint>

// Numbers of matmul that were found by measuring. Algorithms hold none of their own.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

struct matmul_tuning {
  std::int64_t dot_rows;     ///< up to so many rows, each output is a dot product
  std::int64_t rows_ahead;   ///< rows of the weight between what dots use and what they ask for
  std::int64_t panel_bytes;  ///< packed panels of the weight that a thread keeps: its share of L2
  std::int64_t row_gap;      ///< elements between rows of a tile of x
};

// Sapphire Rapids, 2 MiB L2, 2026-12.
inline constexpr matmul_tuning matmul_tuned{8, 8, 512 << 10, 16};

/// Outputs whose dot products run side by side: independent sums hide the FMA latency.
inline constexpr int dot_outputs = 4;
/// Rows that share one pass over those weights.
inline constexpr int dot_row_group = 4;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
