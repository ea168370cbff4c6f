#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include <mambatile/dtype.hpp>
#include <mambatile/export.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/recurrence.hpp>
#include <mambatile/tensor_view.hpp>

/// @file
/// state_update: the recurrence for the next one or few tokens of each row (decode). recurrence.hpp
/// has the formulas. l tokens decoded after a prefill give what the longer prefill gives.

namespace mambatile {
inline namespace v0 {

/// How a state is rounded when it is stored in 16 bits.
enum class rounding : std::uint8_t {
  nearest,     ///< ties to even
  stochastic,  ///< up or down, each as probable as it is near; see rounding_seed
};

[[nodiscard]] constexpr std::string_view to_string(rounding value) noexcept {
  switch (value) {
    case rounding::nearest: return "nearest";
    case rounding::stochastic: return "stochastic";
  }
  return "unknown";
}

/// The tensors of one call. An absent tensor is a default-constructed view; which optional ones are
/// present must match the problem. b = batch, k = seqlen (tokens per row), h = nheads, p = headdim,
/// g = ngroups, n = dstate, t = states per row to start from.
///
/// With k = 1 the token axis may be left out, in all of x, z, dt, B, C and out. Outer strides are
/// free; x, z, out, B and C need stride 1 on their last axis. initial_states and final_states may
/// be the identical view (update in place, or from slot to slot within one pool). out may lie in
/// the same buffer as inputs where no element is shared; any other overlap of an output is refused.
///
/// Speculation: with one target per token, a call stores the state after each of its tokens. The
/// next call takes back rejected tokens by starting from the state after the last accepted one:
/// column num_accepted - 1 of what was stored. Where no token may be accepted, the state that the
/// previous call started from goes in front (source_has_start), and the column is num_accepted: a
/// table (b, k + 1) of slots is the next call's source, its columns from 1 on are the call's
/// targets. No state is copied. A column that a row starts from may be one that the same row
/// writes; the state there is gone then, and a following call cannot go back to it. So that each
/// call's drafts may all be rejected, keep the start out of the targets: after a call of which
/// n > 0 tokens count, swap the row's slots table[0] and table[n] and pass num_accepted = 0.
struct state_update_arguments {
  const_tensor_view x = {};        ///< (b, k, h, p) or (b, h, p), io type
  const_tensor_view dt = {};       ///< (b, k, h) or (b, h), raw step
  const_tensor_view A = {};        ///< (h), f32, negative
  const_tensor_view B = {};        ///< (b, k, g, n) or (b, g, n), io type
  const_tensor_view C = {};        ///< (b, k, g, n) or (b, g, n), io type
  const_tensor_view D = {};        ///< (h) or (h, p); optional
  const_tensor_view z = {};        ///< as x; optional
  const_tensor_view dt_bias = {};  ///< (h); optional
  /// (b, h, p, n), or with state_source a pool (slots, h, p, n); or one per token of the previous
  /// call, (b, t, h, p, n). Optional; absent = start from zero.
  const_tensor_view initial_states = {};
  /// (b), i32: slot of initial_states, -1 = start from zero; or one per token of the previous call,
  /// (b, t). Optional.
  const_tensor_view state_source = {};
  /// (b), i32: slot of final_states, -1 = write none; or one per token, (b, k): the slot for the
  /// state after each token. Optional. No slot twice in a call.
  const_tensor_view state_target = {};
  /// (b), i32: how many tokens of the previous call count: 1 to t, with source_has_start 0 to t
  /// - 1. Given exactly when initial_states or state_source has one state per token.
  const_tensor_view num_accepted = {};
  /// (b), i32: the caller's name for each row, for stochastic rounding. Optional; absent = the
  /// row's number in the batch.
  const_tensor_view row_ids = {};
  /// Stochastic rounding draws from this seed, the row's id, head, token of the call, channel and
  /// state element alone: the same bits whatever else is in the batch, and on every backend. Errors
  /// average out over steps only where the draws differ: change the seed, or the ids, every call.
  std::uint64_t rounding_seed = 0;

  tensor_view out = {};  ///< as x, io type
  /// (b, h, p, n), or with state_target a pool (slots, h, p, n); or one per token, (b, k, h, p, n).
  /// Optional; absent = read only, no state is written.
  tensor_view final_states = {};
};

/// What a plan depends on. The max_* fields are capacities: one plan serves every smaller call.
struct state_update_problem {
  using arguments_type = state_update_arguments;
  static constexpr std::string_view operator_name = "state_update";

  std::int64_t max_batch = 0;   ///< rows
  std::int64_t max_seqlen = 1;  ///< tokens per row
  std::int64_t nheads = 0;
  std::int64_t headdim = 0;
  std::int64_t ngroups = 1;
  std::int64_t dstate = 0;

  dtype io = dtype::f32;     ///< x, z, B, C, out
  dtype dt = dtype::f32;     ///< dt
  dtype state = dtype::f32;  ///< initial and final states
  dtype D_type = dtype::f32;
  dtype dt_bias_type = dtype::f32;

  bool dt_softplus = false;
  std::array<float, 2> dt_limit = {0.0F, std::numeric_limits<float>::infinity()};

  skip D = skip::none;
  bool has_z = false;
  bool has_dt_bias = false;
  bool has_initial_states = false;
  bool has_final_states = false;
  bool has_state_source = false;
  bool has_state_target = false;
  bool per_token_source = false;  ///< start from one of the previous call's states; num_accepted
  bool source_has_start = false;  ///< the first of those is the state before its first token
  bool per_token_target = false;  ///< store the state after each token
  /// Rows whose slots are all -1, read and written, get out = 0 and nothing of them is read. Needs
  /// state_source, and state_target where states are written.
  bool skip_padding = false;
  rounding state_rounding = rounding::nearest;  ///< stochastic: for a 16-bit state that is written
  bool has_row_ids = false;

  /// A step size per channel (dt with a trailing headdim axis), or an A per state element
  /// (nheads, headdim, dstate): Mamba-1's form, which no backend serves.
  bool untied_dt = false;
  bool untied_A = false;

  int threads = 0;  ///< host: most threads a call uses; 0 = all of the backend's

  friend bool operator==(state_update_problem const&, state_update_problem const&) = default;
};

/// One line with every field that differs from its default.
[[nodiscard]] MAMBATILE_EXPORT std::string to_string(state_update_problem const& problem);

using state_update_plan = operator_plan<state_update_problem>;
extern template class MAMBATILE_EXPORT operator_plan<state_update_problem>;

/// What the tensors of a call do not tell.
struct state_update_options {
  bool dt_softplus = false;
  std::array<float, 2> dt_limit = {0.0F, std::numeric_limits<float>::infinity()};
  bool source_has_start = false;
  bool skip_padding = false;
  rounding state_rounding = rounding::nearest;
  int threads = 0;
};

/// The smallest problem that covers one call: sizes, types and presence are read off the tensors.
/// Reads no tensor's data. Shapes that do not fit together are found when the plan executes.
/// @throws invalid_argument where a needed tensor is absent or has the wrong rank.
[[nodiscard]] MAMBATILE_EXPORT state_update_problem
make_problem(state_update_arguments const& arguments, state_update_options const& options = {});

}  // namespace v0
}  // namespace mambatile

template <>
struct std::hash<mambatile::state_update_problem> {
  [[nodiscard]] MAMBATILE_EXPORT std::size_t operator()(
      mambatile::state_update_problem const& problem) const noexcept;
};
