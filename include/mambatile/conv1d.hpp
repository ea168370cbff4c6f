#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <mambatile/dtype.hpp>
#include <mambatile/export.hpp>
#include <mambatile/packing.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/tensor_view.hpp>

/// @file
/// causal_conv1d and causal_conv1d_update: the causal depthwise convolution in front of the scan,
/// over whole sequences (prefill) and over the next few tokens (decode, speculation).
///
/// Source: Dao and Gu, "Transformers are SSMs" (2024), section 7. Per batch row and channel:
///
///     v_t = bias + sum_k weight_k raw_{t - (width - 1) + k}       out_t = act(v_t)
///
/// weight_{width - 1} multiplies the current token. raw is x; before a sequence's first token it is
/// what the row's state holds, and 0 without one. Everything is accumulated in f32 and rounded
/// once. The bits of an output depend on its own window, weight and bias alone: not on strides,
/// addresses, neighbours or threads.
///
/// A state holds the last state_len >= width - 1 raw inputs of a sequence, oldest first, zeros on
/// the left where there were fewer: exact copies. With cache_seqlens it is a ring instead: the
/// token with the number i of its sequence lies in column i % state_len. A new sequence's ring
/// starts as zeros (columns of tokens that never were are read as they stand).

namespace mambatile {
inline namespace v0 {

/// What is applied to the convolution's sum.
enum class activation : std::uint8_t {
  none,
  silu,  ///< v / (1 + exp(-v))
};

[[nodiscard]] constexpr std::string_view to_string(activation value) noexcept {
  switch (value) {
    case activation::none: return "none";
    case activation::silu: return "silu";
  }
  return "unknown";
}

/// The tensors of one causal_conv1d. An absent tensor is a default-constructed view; which optional
/// ones are present must match the problem. b = batch, l = seqlen, c = channels, w = width,
/// s = sequences (cu_seqlens), r = s when cu_seqlens is given, else b.
///
/// All strides are free. The fast order has stride 1 along channels; (b, c, l) storage is the view
/// with stride 1 along tokens. initial_states and final_states may be the identical view (update in
/// place). out may lie in the same buffer as inputs where no element is shared; any other overlap
/// of an output is refused.
struct conv1d_arguments {
  const_tensor_view x = {};       ///< (b, l, c), io type
  const_tensor_view weight = {};  ///< (c, w), f32 or io type
  const_tensor_view bias = {};    ///< (c), f32 or io type; optional
  /// (r, c, state_len), or with state_source a pool (slots, c, state_len); optional, absent =
  /// zeros. With seq_idx it belongs to the first sequence of each row.
  const_tensor_view initial_states = {};
  /// (s + 1), i32; starts at 0, non-decreasing, ends at or before l. Tokens beyond are untouched.
  const_tensor_view cu_seqlens = {};
  /// (b, l), i32; non-decreasing over its entries >= 0. A window reaches only tokens of its own id.
  /// A token of -1 gets out = 0 and is part of no window and no state, as if it were not there.
  const_tensor_view seq_idx = {};
  const_tensor_view state_source = {};  ///< (r), i32: slot of initial_states, -1 = start from zero
  const_tensor_view state_target = {};  ///< (r), i32: slot of final_states, -1 = write none
  /// (r), i32, >= 0; makes states rings: the row's first token (its first that is no padding) goes
  /// to column cache_seqlens % state_len, the next to the one after it, and so on.
  const_tensor_view cache_seqlens = {};

  tensor_view out = {};  ///< (b, l, c), io type
  /// (r, c, state_len), or with state_target a pool; optional. With seq_idx it belongs to the last
  /// sequence of each row: tokens of earlier ones count as zeros.
  tensor_view final_states = {};
};

/// What a plan depends on. The max_* fields are capacities: one plan serves every smaller call.
struct conv1d_problem {
  using arguments_type = conv1d_arguments;
  static constexpr std::string_view operator_name = "causal_conv1d";

  std::int64_t max_batch = 0;      ///< rows (1 with cu_seqlens)
  std::int64_t max_seqlen = 0;     ///< tokens per row
  std::int64_t max_sequences = 0;  ///< sequences in cu_seqlens; 0 otherwise
  std::int64_t channels = 0;
  std::int64_t width = 4;      ///< taps, >= 1
  std::int64_t state_len = 0;  ///< columns of a state, >= width - 1; 0 where there are no states

  dtype io = dtype::f32;      ///< x, out
  dtype weight = dtype::f32;  ///< f32 or the io type
  dtype bias = dtype::f32;    ///< f32 or the io type
  dtype state = dtype::f32;   ///< initial and final states: f32 or the io type

  activation act = activation::none;
  bool has_bias = false;
  bool has_initial_states = false;
  bool has_final_states = false;
  bool has_state_source = false;
  bool has_state_target = false;
  bool circular = false;  ///< states are rings; cache_seqlens is given
  packing pack = packing::dense;

  int threads = 0;  ///< host: most threads a call uses; 0 = all of the backend's

  friend bool operator==(conv1d_problem const&, conv1d_problem const&) = default;
};

/// The tensors of one causal_conv1d_update: causal_conv1d for the next k >= 1 tokens of each row,
/// going on from states. Letters, strides and aliasing as there; t = columns of a table of slots.
///
/// Two ways to take back tokens of the previous call (rejected speculation), both by num_accepted:
/// from one state that is wide enough (state_len >= width - 1 + rejected), which drops the rejected
/// columns; or from the state that the previous call stored after each of its tokens. Where none of
/// them may be accepted, the state that the call started from goes in front of those
/// (source_has_start). In one table of slots for call after call, the start must be none of the
/// targets: after a call of which n > 0 tokens count, swap the row's slots table[0] and table[n]
/// and pass num_accepted = 0, as with state_update.
struct conv1d_update_arguments {
  const_tensor_view x = {};  ///< (b, k, c), or (b, c) for k = 1; with cu_seqlens (1, tokens, c)
  const_tensor_view weight = {};  ///< (c, w), f32 or io type
  const_tensor_view bias = {};    ///< (c), f32 or io type; optional
  /// (r, c, state_len), or with state_source a pool (slots, c, state_len); per token of the
  /// previous call: (r, t, c, state_len), of which num_accepted - 1 is the column to start from,
  /// with source_has_start num_accepted.
  /// Optional, absent = zeros.
  const_tensor_view initial_states = {};
  /// (s + 1), i32, as in causal_conv1d: rows with different numbers of tokens.
  const_tensor_view cu_seqlens = {};
  const_tensor_view seq_idx = {};  ///< (b, k), i32, as in causal_conv1d
  /// (r), i32: slot of initial_states, -1 = start from zero; or (r, t) with num_accepted, whose
  /// column num_accepted - 1, with source_has_start num_accepted, is the slot.
  const_tensor_view state_source = {};
  /// (r), i32: slot of final_states, -1 = write none; or (r, t), t >= the row's tokens (t = k
  /// without cu_seqlens): the slot for the state after each token.
  const_tensor_view state_target = {};
  /// (r), i32, >= 0: states are rings, and the row's first token goes to column
  /// (cache_seqlens - rejected) % state_len.
  const_tensor_view cache_seqlens = {};
  /// (r), i32; optional: tokens of the previous call that count; rejected = num_previous -
  /// num_accepted. From one state: 0 to num_previous. Per token: 1 to t, with source_has_start 0 to
  /// t - 1.
  const_tensor_view num_accepted = {};
  /// (r), i32; optional: tokens of the row in the previous call; absent = as many as in this one.
  const_tensor_view num_previous = {};

  tensor_view out = {};  ///< as x, io type
  /// (r, c, state_len), or with state_target a pool; or per token (r, t, c, state_len), t as for
  /// state_target. Optional; what belongs to no token is untouched.
  tensor_view final_states = {};
};

/// What a plan depends on. The max_* fields are capacities: one plan serves every smaller call.
struct conv1d_update_problem {
  using arguments_type = conv1d_update_arguments;
  static constexpr std::string_view operator_name = "causal_conv1d_update";

  std::int64_t max_batch = 0;      ///< rows (1 with cu_seqlens)
  std::int64_t max_seqlen = 1;     ///< tokens k (all tokens with cu_seqlens)
  std::int64_t max_sequences = 0;  ///< sequences in cu_seqlens; 0 otherwise
  std::int64_t channels = 0;
  std::int64_t width = 4;      ///< taps, >= 1
  std::int64_t state_len = 0;  ///< columns of a state, >= width - 1; 0 where there are no states

  dtype io = dtype::f32;      ///< x, out
  dtype weight = dtype::f32;  ///< f32 or the io type
  dtype bias = dtype::f32;    ///< f32 or the io type
  dtype state = dtype::f32;   ///< initial and final states: f32 or the io type

  activation act = activation::none;
  bool has_bias = false;
  bool has_initial_states = false;
  bool has_final_states = false;
  bool has_state_source = false;
  bool has_state_target = false;
  bool per_token_source = false;  ///< start from one of the previous call's states, per token
  bool source_has_start = false;  ///< the first of those is the state before its first token
  bool per_token_target = false;  ///< store the state after each token
  bool has_num_accepted = false;
  bool has_num_previous = false;
  bool circular = false;  ///< states are rings; cache_seqlens is given
  /// Rows whose slots are all -1, read and written, get out = 0 and nothing of them is read. Needs
  /// state_source, and state_target where states are written.
  bool skip_padding = false;
  packing pack = packing::dense;

  /// Most columns t of final_states or state_target with per_token_target; 0 otherwise.
  std::int64_t max_targets = 0;

  int threads = 0;  ///< host: most threads a call uses; 0 = all of the backend's

  friend bool operator==(conv1d_update_problem const&, conv1d_update_problem const&) = default;
};

/// One line with every field that differs from its default.
[[nodiscard]] MAMBATILE_EXPORT std::string to_string(conv1d_problem const& problem);
[[nodiscard]] MAMBATILE_EXPORT std::string to_string(conv1d_update_problem const& problem);

using conv1d_plan = operator_plan<conv1d_problem>;
using conv1d_update_plan = operator_plan<conv1d_update_problem>;
extern template class MAMBATILE_EXPORT operator_plan<conv1d_problem>;
extern template class MAMBATILE_EXPORT operator_plan<conv1d_update_problem>;

/// What the tensors of a call do not tell.
struct conv1d_options {
  activation act = activation::none;
  int threads = 0;
};
struct conv1d_update_options {
  activation act = activation::none;
  bool source_has_start = false;
  bool skip_padding = false;
  int threads = 0;
};

/// The smallest problem that covers one call: sizes, types and presence are read off the tensors.
/// Reads no tensor's data. Shapes that do not fit together are found when the plan executes.
/// @throws invalid_argument where a needed tensor is absent or has the wrong rank.
[[nodiscard]] MAMBATILE_EXPORT conv1d_problem make_problem(conv1d_arguments const& arguments,
                                                           conv1d_options const& options = {});
[[nodiscard]] MAMBATILE_EXPORT conv1d_update_problem
make_problem(conv1d_update_arguments const& arguments, conv1d_update_options const& options = {});

}  // namespace v0
}  // namespace mambatile

template <>
struct std::hash<mambatile::conv1d_problem> {
  [[nodiscard]] MAMBATILE_EXPORT std::size_t operator()(
      mambatile::conv1d_problem const& problem) const noexcept;
};
template <>
struct std::hash<mambatile::conv1d_update_problem> {
  [[nodiscard]] MAMBATILE_EXPORT std::size_t operator()(
      mambatile::conv1d_update_problem const& problem) const noexcept;
};
