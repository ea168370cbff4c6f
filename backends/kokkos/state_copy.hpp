#pragma once

#include <cstdint>

#include <mambatile/dtype.hpp>

#include "stochastic_rounding.hpp"

// Copies of one head's state between any types and strides.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// A state, or some channels of one; `data` is its first element, null where there is none.
struct state_ref {
  void* data = nullptr;
  dtype type = dtype::f32;
  std::int64_t headdim_stride = 1;
  std::int64_t dstate_stride = 1;

  [[nodiscard]] bool exists() const noexcept { return data != nullptr; }
  /// headdim is innermost.
  [[nodiscard]] bool is_by_channel() const noexcept { return headdim_stride == 1; }
  /// dstate is innermost.
  [[nodiscard]] bool is_by_element() const noexcept { return dstate_stride == 1; }
};

struct state_extent {
  std::int64_t channels;
  std::int64_t dstate;
};

/// Rounds to nearest where `to` has 16 bits.
void copy_state(state_ref const& from, state_ref const& to, state_extent const& extent) noexcept;

/// From f32 to 16 bits. `first` is the channel that the references start at.
void copy_state_stochastically(state_ref const& from, state_ref const& to,
                               state_extent const& extent, detail::rounding_key key,
                               std::int64_t first) noexcept;

void clear_state(state_ref const& to, state_extent const& extent) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
