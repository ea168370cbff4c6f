#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/plan.hpp>
#include <mambatile/tensor_view.hpp>

#include "overlap.hpp"

// Checks of tensors that all operators share. Messages name the operator, the tensor, what it got
// and the rule. They run in every execute: text is made, and memory allocated, only on failure.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// One axis of an expected shape.
struct expected_axis {
  std::string_view name;
  std::int64_t extent;
};

/// A tensor of a call, with the name its messages use.
struct named_tensor {
  std::string_view name;
  const_tensor_view view;
};

class argument_checker {
 public:
  argument_checker(std::string_view operator_name, device where) noexcept
      : operator_name_(operator_name), where_(where) {}

  /// Present exactly when the problem says so; `field` and its value are what says it.
  template <class Value>
  void presence(named_tensor const& tensor, bool expected, std::string_view field,
                Value const& value) const {
    if (static_cast<bool>(tensor.view) != expected) {
      fail_presence(tensor, fmt::format("{} = {}", field, value));
    }
  }
  /// Given, with this rank; `axes` is text such as "(batch, seqlen, nheads, headdim)".
  void rank(named_tensor const& tensor, int rank, std::string_view axes) const;
  /// Type, shape, device, data that is there and aligned to its element, and strides whose offsets
  /// in bytes fit into 64 bits: what runs behind this check may add them up.
  void tensor(named_tensor const& tensor, dtype type, std::span<expected_axis const> shape) const;
  void tensor(named_tensor const& tensor, dtype type,
              std::initializer_list<expected_axis> shape) const;
  /// The last axis has stride 1, or at most one element.
  void inner_stride(named_tensor const& tensor) const;
  /// An extent that a plan's capacity bounds.
  void capacity(std::string_view extent_name, std::int64_t extent, std::string_view capacity_name,
                std::int64_t capacity) const;
  /// No two index tuples of an output are the same element.
  void distinct_elements(named_tensor const& output) const;
  /// The output shares no element with the other tensor.
  void disjoint(named_tensor const& output, named_tensor const& other) const;
  /// As disjoint, but the identical view is fine.
  void disjoint_or_identical(named_tensor const& output, named_tensor const& other) const;

  /// Every output distinct in itself and disjoint from all else; final_states may be the identical
  /// view as initial_states. Absent tensors overlap nothing.
  void overlaps(std::span<named_tensor const> outputs, std::span<named_tensor const> inputs) const;

  [[noreturn]] void fail(std::string const& what) const;
  [[noreturn]] void fail_unsupported(std::string const& what) const;

 private:
  [[noreturn]] void fail_presence(named_tensor const& tensor, std::string const& rule) const;

  std::string_view operator_name_;
  device where_;
};

// Index arrays, when they are on the host.

/// The tensor cu_seqlens of a call with this many rows and tokens: (s + 1), i32, s within capacity.
void check_cu_seqlens_tensor(argument_checker const& checker, const_tensor_view const& cu_seqlens,
                             std::int64_t batch, std::int64_t tokens, std::int64_t max_sequences);
/// cu_seqlens (s + 1): starts at 0, does not decrease, ends at or before `tokens`.
void check_cu_seqlens(argument_checker const& checker, const_tensor_view const& cu_seqlens,
                      std::int64_t tokens);
/// seq_idx (b, l): entries >= -1, non-decreasing over those >= 0.
void check_seq_idx(argument_checker const& checker, const_tensor_view const& seq_idx);
/// Slots (rows) or (rows, tokens): within [-1, slots).
void check_slots(argument_checker const& checker, named_tensor const& rows_of_slots,
                 std::int64_t slots);

/// Slots (rows) of a call in which final_states is the identical view as initial_states and the
/// other end has no slots: -1 or the row itself, else one row would read what another writes.
void check_own_slots(argument_checker const& checker, named_tensor const& rows_of_slots);

/// Of a row's source states, one per token of the previous call, num_accepted picks one: the state
/// after that many tokens.
struct accepted_tokens {
  const_tensor_view counts = {};
  /// The tokens that the first of them stands behind: 1, or 0 with source_has_start.
  std::int64_t of_first = 1;
};

/// Bytes of scratch that check_slot_targets needs for this many entries of state_target.
[[nodiscard]] std::size_t slot_scratch_bytes(std::int64_t entries) noexcept;
/// No slot is written twice; where both pools are the same memory, no row reads a slot that another
/// row writes. `source` may be absent; of a (rows, tokens) one, the accepted column is read.
void check_slot_targets(argument_checker const& checker, const_tensor_view const& target,
                        const_tensor_view const& source, accepted_tokens const& accepted,
                        bool same_pool, void* scratch);

/// Both rules above for the states of a call: `arguments` has initial_states, final_states,
/// state_source and state_target, each absent or checked on its own.
template <class Arguments>
void check_slot_ends(argument_checker const& checker, Arguments const& arguments,
                     accepted_tokens const& accepted, void* scratch) {
  auto const& source = arguments.state_source;
  auto const& target = arguments.state_target;
  bool const in_place = arguments.initial_states && arguments.final_states &&
                        is_identical(arguments.initial_states, arguments.final_states);
  if (in_place && static_cast<bool>(source) != static_cast<bool>(target)) {
    check_own_slots(checker, source ? named_tensor{"state_source", source}
                                    : named_tensor{"state_target", target});
  }
  if (target) check_slot_targets(checker, target, source, accepted, in_place, scratch);
}

/// Element of an i32 vector or matrix on the host.
[[nodiscard]] inline std::int32_t index_at(const_tensor_view const& view,
                                           std::int64_t position) noexcept {
  return static_cast<std::int32_t const*>(view.data)[position * view.stride(0)];
}
[[nodiscard]] inline std::int32_t index_at(const_tensor_view const& view, std::int64_t row,
                                           std::int64_t position) noexcept {
  return static_cast<std::int32_t const*>(
      view.data)[row * view.stride(0) + position * view.stride(1)];
}

/// All slots of one row, of (rows) or (rows, tokens), are -1.
[[nodiscard]] bool all_none(const_tensor_view const& slots, std::int64_t row) noexcept;
/// Which of its source states a row starts from.
[[nodiscard]] inline std::int64_t accepted_column(accepted_tokens const& accepted,
                                                  std::int64_t row) noexcept {
  return index_at(accepted.counts, row) - accepted.of_first;
}
/// The slot that one row reads: of a (rows, tokens) `source`, the one in the accepted column.
[[nodiscard]] inline std::int32_t source_slot(const_tensor_view const& source,
                                              accepted_tokens const& accepted,
                                              std::int64_t row) noexcept {
  return source.rank == 1 ? index_at(source, row)
                          : index_at(source, row, accepted_column(accepted, row));
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
