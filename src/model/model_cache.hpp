#pragma once

#include <cstdint>
#include <vector>

#include <mambatile/backend.hpp>
#include <mambatile/checkpoint.hpp>
#include <mambatile/model.hpp>

namespace mambatile {
inline namespace v0 {

/// Memory of a model_cache: layer after layer, the states of all slots.
struct model_cache::storage {
  backend const* served_by = nullptr;
  device where = {};
  model_config config;
  dtype io = dtype::f32;
  dtype state = dtype::f32;
  state_layout layout = state_layout::dstate_innermost;
  std::int64_t slots = 0;
  buffer conv;
  buffer ssm;
  /// Tokens each slot has seen; 0 = empty, its memory holds nothing.
  std::vector<std::int64_t> tokens_seen;

  [[nodiscard]] std::int64_t conv_elements() const noexcept;  ///< of one slot in one layer
  [[nodiscard]] std::int64_t ssm_elements() const noexcept;
  [[nodiscard]] tensor_view conv_states(std::int64_t layer) const noexcept;
  [[nodiscard]] tensor_view ssm_states(std::int64_t layer) const noexcept;
  /// Bytes of a slot's conv state in a layer, and where they are.
  [[nodiscard]] void* conv_slot(std::int64_t layer, std::int64_t slot) const noexcept;
  [[nodiscard]] void* ssm_slot(std::int64_t layer, std::int64_t slot) const noexcept;
  [[nodiscard]] std::size_t conv_slot_bytes() const noexcept;
  [[nodiscard]] std::size_t ssm_slot_bytes() const noexcept;

  void check_slot(std::int64_t slot) const;
};

}  // namespace v0
}  // namespace mambatile
