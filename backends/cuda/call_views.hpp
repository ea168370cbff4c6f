#pragma once

#include <mambatile/tensor_view.hpp>

#include "kernel_tensors.hpp"

// From the views of a call to what kernels take.

namespace mambatile {
inline namespace v0 {
namespace gpu {

[[nodiscard]] inline token_tensor as_token_tensor(const_tensor_view const& view) {
  if (!view) return {};
  return {const_cast<void*>(view.data), view.stride(0), view.stride(1), view.stride(2)};
}

/// A view (row, head, p, n).
[[nodiscard]] inline state_tensor as_state_tensor(const_tensor_view const& view) {
  if (!view) return {};
  int const inner = view.rank - 3;
  return {const_cast<void*>(view.data),
          view.type,
          view.stride(0),
          view.stride(inner),
          view.stride(inner + 1),
          view.stride(inner + 2)};
}

[[nodiscard]] inline small_tensor as_small_tensor(const_tensor_view const& view) {
  if (!view) return {};
  return {view.data, view.type, view.stride(0), view.rank > 1 ? view.stride(1) : 0};
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
