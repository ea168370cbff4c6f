#pragma once

#include <cstdint>

// Numbers of the norm that were found by measuring, one row per vector width. Algorithms hold none
// of their own.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

struct norm_tuning {
  int pack_width;             ///< row's key: f32 lanes of a register
  int sums;                   ///< registers that a sum of squares runs in
  std::int64_t share_values;  ///< least work that pays for a thread, in channels of a row
};

// AVX-512: Sapphire Rapids, 2026-12. The others: unmeasured.
inline constexpr norm_tuning norm_tunings[] = {
    {16, 4, 4096},
    {8, 4, 4096},
    {4, 4, 4096},
    {1, 4, 4096},
};

[[nodiscard]] constexpr norm_tuning const& norm_tuning_for(int width) noexcept {
  for (auto const& row : norm_tunings) {
    if (row.pack_width == width) return row;
  }
  return norm_tunings[3];
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
