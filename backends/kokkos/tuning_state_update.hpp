#pragma once

#include <cstddef>
#include <cstdint>

// Numbers of state_update that were found by measuring, one row per vector width. Algorithms hold
// none of their own.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

struct state_update_tuning {
  int pack_width;                 ///< row's key: f32 lanes of a register
  int panel_vectors;              ///< registers of columns that go down the state at once
  int rows_together;              ///< rows that are walked at once where dstate is innermost
  std::ptrdiff_t prefetch_bytes;  ///< how far ahead of the load
  std::int64_t hot_bytes;         ///< states of a call and thread up to here are not prefetched
};

inline constexpr state_update_tuning state_update_tunings[] = {
    {16, 8, 2, 2048, 1 << 18},
    {8, 8, 2, 2048, 1 << 17},
    {4, 8, 2, 1024, 1 << 17},
    {1, 4, 1, 1024, 1 << 17},
};

[[nodiscard]] constexpr state_update_tuning const& state_update_tuning_for(int width) noexcept {
  for (auto const& row : state_update_tunings) {
    if (row.pack_width == width) return row;
  }
  return state_update_tunings[3];
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
