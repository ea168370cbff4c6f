#pragma once

#include <cstdint>

#include <mambatile/dtype.hpp>

// A head's state between its tensor (any strides, any type) and the panels that the scan works on.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// One head's state in a tensor; `data` is its element (p, n) = (0, 0).
struct state_matrix {
  void* data;
  dtype type;
  std::int64_t headdim_stride;
  std::int64_t dstate_stride;
};

/// Columns [begin, end) of headdim; `begin` is a multiple of pack_width.
struct headdim_range {
  std::int64_t begin;
  std::int64_t end;
};

// Panels: the columns in stretches of panel_width, each stored (dstate, its width rounded up to
// packs); see panel_vectors. Columns beyond `end` are 0.

/// Registers that the panel starting at column `begin` is wide.
[[nodiscard]] int panel_vectors(headdim_range const& columns, std::int64_t begin) noexcept;
/// f32 elements of the panels.
[[nodiscard]] std::int64_t panel_elements(std::int64_t columns, std::int64_t dstate) noexcept;

void load_state(state_matrix const& from, headdim_range const& columns, std::int64_t dstate,
                float* panels) noexcept;
/// Rounds to nearest.
void store_state(float const* panels, headdim_range const& columns, std::int64_t dstate,
                 state_matrix const& to) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
