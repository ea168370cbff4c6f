#pragma once

#include <mambatile/conv1d.hpp>
#include <mambatile/tensor_view.hpp>

// Both conv operators in one form: a causal_conv1d is an update without speculation. Checks and
// host backends are written once, for the update.

namespace mambatile {
inline namespace v0 {
namespace detail {

[[nodiscard]] conv1d_update_problem as_update(conv1d_problem const& problem);
[[nodiscard]] conv1d_update_arguments as_update(conv1d_arguments const& arguments);

/// (b, c) as (b, 1, c); other views as they are.
template <class Void>
[[nodiscard]] constexpr basic_tensor_view<Void> with_token_axis(
    basic_tensor_view<Void> view) noexcept {
  if (view.rank != 2) return view;
  view.rank = 3;
  view.extents[2] = view.extents[1];
  view.strides[2] = view.strides[1];
  view.extents[1] = 1;
  view.strides[1] = 0;
  return view;
}

/// States that sequences own: one per batch row, or per entry of cu_seqlens.
[[nodiscard]] inline std::int64_t rows_of(conv1d_update_problem const& problem,
                                          conv1d_update_arguments const& arguments) noexcept {
  return problem.pack == packing::cu_seqlens ? arguments.cu_seqlens.extent(0) - 1
                                             : arguments.x.extent(0);
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
