#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <mambatile/tensor_view.hpp>

namespace mambatile::testing {

/// Calls visit(offset) for every element of a view, last axis fastest; offsets are in elements.
template <class Void, class Visitor>
void for_each_offset(basic_tensor_view<Void> const& view, Visitor const& visit) {
  if (view.size() == 0) return;
  std::array<std::int64_t, max_rank> index = {};
  std::int64_t offset = 0;
  for (;;) {
    visit(offset);
    int axis = view.rank - 1;
    for (; axis >= 0; --axis) {
      auto& position = index[static_cast<std::size_t>(axis)];
      offset += view.stride(axis);
      if (++position < view.extent(axis)) break;
      offset -= position * view.stride(axis);
      position = 0;
    }
    if (axis < 0) return;
  }
}

/// The part [begin, begin + count) of an axis.
template <class Void>
[[nodiscard]] basic_tensor_view<Void> slice(basic_tensor_view<Void> view, int axis,
                                            std::int64_t begin, std::int64_t count) {
  using bytes = std::conditional_t<std::is_const_v<Void>, std::byte const, std::byte>;
  if (!view) return view;
  view.data = static_cast<bytes*>(view.data) +
              begin * view.stride(axis) * static_cast<std::int64_t>(size_of(view.type));
  view.extents[static_cast<std::size_t>(axis)] = count;
  return view;
}

}  // namespace mambatile::testing
