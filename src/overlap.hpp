#pragma once

#include <cstdint>

#include <mambatile/tensor_view.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {

// Views here have passed argument_checker::tensor: no sum of their strides overflows.

/// The same elements in the same order: axes with at most one element do not count.
[[nodiscard]] bool is_identical(const_tensor_view const& left, const_tensor_view const& right);

/// Whether two views may share an element. Exact for what occurs in practice: separate ranges, and
/// slices of a buffer whose common pitch keeps them apart; other tangles of strides count as
/// shared.
[[nodiscard]] bool may_overlap(const_tensor_view const& left, const_tensor_view const& right);

/// The bytes that a view spans, gaps included, counted from its `data`: begin <= 0 < end.
struct byte_span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
/// Of a view with elements.
[[nodiscard]] byte_span byte_span_of(const_tensor_view const& view);

/// Whether two index tuples of one view may name the same element.
[[nodiscard]] bool may_overlap_itself(const_tensor_view const& view);

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
