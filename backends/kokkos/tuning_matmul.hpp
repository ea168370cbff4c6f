#pragma once

#include <cstdint>

// Numbers of matmul that were found by measuring. Algorithms hold none of their own.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

struct matmul_tuning {
  std::int64_t dot_rows;     ///< up to so many rows, each output is a dot product
  std::int64_t input_bytes;  ///< packed rows of x that a thread keeps at a time: its share of L2
  std::int64_t inner_block;  ///< inputs that a packed panel of the weight holds
};

// Unmeasured beyond AVX-512 with 2 MiB L2 (Sapphire Rapids, 2026-12).
inline constexpr matmul_tuning matmul_tuned{8, 1 << 20, 512};

/// Outputs whose dot products run side by side: independent sums hide the FMA latency.
inline constexpr int dot_outputs = 4;
/// Rows that share one pass over those weights.
inline constexpr int dot_row_group = 4;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
