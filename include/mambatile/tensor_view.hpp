#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include <mambatile/dtype.hpp>
#include <mambatile/export.hpp>

/// @file
/// Non-owning views of strided tensors.

namespace mambatile {
inline namespace v0 {

/// Where memory lives.
enum class device_kind : std::uint8_t { host, cuda };

/// One device: a kind, and its index among the devices of that kind.
struct device {
  device_kind kind = device_kind::host;
  int index = 0;

  friend constexpr bool operator==(device, device) noexcept = default;
};

/// "host", "cuda:0", ...
[[nodiscard]] MAMBATILE_EXPORT std::string to_string(device where);

/// Largest rank of a tensor view.
inline constexpr int max_rank = 5;

/// A strided view of memory that somebody else owns. A default-constructed view (rank 0) means
/// "absent". Strides are in elements, may be anything on outer axes (zero and negative included,
/// where only read) and are 64-bit throughout. `data` points at the element with index zero.
template <class Void>
struct basic_tensor_view {
  static_assert(std::is_void_v<Void>);

  Void* data = nullptr;
  dtype type = dtype::f32;
  device where = {};
  int rank = 0;
  std::array<std::int64_t, max_rank> extents = {};
  std::array<std::int64_t, max_rank> strides = {};

  /// True when the tensor was given at all.
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return rank != 0; }

  /// Number of elements; 0 for an absent tensor.
  [[nodiscard]] constexpr std::int64_t size() const noexcept {
    if (rank == 0) return 0;
    // Zeros first: what stands before one need not have a product.
    for (int axis = 0; axis < rank; ++axis) {
      if (extent(axis) == 0) return 0;
    }
    std::int64_t count = 1;
    for (int axis = 0; axis < rank; ++axis) count *= extent(axis);
    return count;
  }

  [[nodiscard]] constexpr std::int64_t extent(int axis) const noexcept {
    return extents[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] constexpr std::int64_t stride(int axis) const noexcept {
    return strides[static_cast<std::size_t>(axis)];
  }

  /// A view to write is a view to read.
  constexpr operator basic_tensor_view<void const>() const noexcept
      requires(!std::is_const_v<Void>) {
    return {data, type, where, rank, extents, strides};
  }
};

using tensor_view = basic_tensor_view<void>;
using const_tensor_view = basic_tensor_view<void const>;

/// Shape as text: "(2, 128, 8, 64)".
[[nodiscard]] MAMBATILE_EXPORT std::string shape_string(const_tensor_view const& view);

namespace detail {
template <class Element>
using void_like = std::conditional_t<std::is_const_v<Element>, void const, void>;
}  // namespace detail

/// View of `data` with the given extents and strides (in elements). The two lists have the same
/// length, 1 to max_rank; what is beyond is ignored.
template <class Element>
[[nodiscard]] constexpr basic_tensor_view<detail::void_like<Element>> make_view(
    Element* data, std::initializer_list<std::int64_t> extents,
    std::initializer_list<std::int64_t> strides, device where = {}) noexcept {
  basic_tensor_view<detail::void_like<Element>> view;
  view.data = data;
  view.type = dtype_of_v<std::remove_const_t<Element>>;
  view.where = where;
  for (auto extent : extents) {
    if (view.rank < max_rank) view.extents[static_cast<std::size_t>(view.rank++)] = extent;
  }
  std::size_t axis = 0;
  for (auto stride : strides) {
    if (axis < static_cast<std::size_t>(view.rank)) view.strides[axis++] = stride;
  }
  return view;
}

/// View of dense row-major `data`: the last axis has stride 1.
template <class Element>
[[nodiscard]] constexpr basic_tensor_view<detail::void_like<Element>> make_view(
    Element* data, std::initializer_list<std::int64_t> extents, device where = {}) noexcept {
  auto view = make_view(data, extents, {}, where);
  std::int64_t stride = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.strides[static_cast<std::size_t>(axis)] = stride;
    stride *= view.extents[static_cast<std::size_t>(axis)];
  }
  return view;
}

/// Order in which a state's two inner axes are stored. The logical shape is (.., headdim, dstate)
/// in both cases.
enum class state_layout : std::uint8_t {
  dstate_innermost,   ///< stored as (.., headdim, dstate)
  headdim_innermost,  ///< stored as (.., dstate, headdim)
};

/// "dstate_innermost" or "headdim_innermost".
[[nodiscard]] constexpr char const* to_string(state_layout layout) noexcept {
  return layout == state_layout::dstate_innermost ? "dstate_innermost" : "headdim_innermost";
}

/// View of dense states with logical shape (rows, nheads, headdim, dstate) in the given storage
/// order.
template <class Element>
[[nodiscard]] constexpr basic_tensor_view<detail::void_like<Element>> make_state_view(
    Element* data, std::int64_t rows, std::int64_t nheads, std::int64_t headdim,
    std::int64_t dstate, state_layout layout = state_layout::dstate_innermost,
    device where = {}) noexcept {
  auto const inner = headdim * dstate;
  return layout == state_layout::dstate_innermost
             ? make_view(data, {rows, nheads, headdim, dstate}, {nheads * inner, inner, dstate, 1},
                         where)
             : make_view(data, {rows, nheads, headdim, dstate}, {nheads * inner, inner, 1, headdim},
                         where);
}

}  // namespace v0
}  // namespace mambatile
