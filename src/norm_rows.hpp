#pragma once

#include <cstdint>
#include <limits>

#include <mambatile/tensor_view.hpp>

// The rows of gated_rms_norm: every index of a view's outer axes.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// At most the largest number there is, which no capacity allows.
[[nodiscard]] constexpr std::int64_t norm_rows(const_tensor_view const& view) noexcept {
  std::int64_t rows = 1;
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    if (__builtin_mul_overflow(rows, view.extent(axis), &rows)) {
      rows = std::numeric_limits<std::int64_t>::max();
    }
  }
  return rows;
}

/// Elements from a view's data to where row `row` starts, rows counted with the last outer axis
/// fastest.
[[nodiscard]] constexpr std::int64_t norm_row_offset(const_tensor_view const& view,
                                                     std::int64_t row) noexcept {
  std::int64_t offset = 0;
  for (int axis = view.rank - 2; axis > 0; --axis) {
    offset += row % view.extent(axis) * view.stride(axis);
    row /= view.extent(axis);
  }
  return offset + row * view.stride(0);
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
