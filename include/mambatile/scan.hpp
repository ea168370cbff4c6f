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
#include <mambatile/packing.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/recurrence.hpp>
#include <mambatile/tensor_view.hpp>

/// @file
/// chunk_scan: the Mamba-2 scan over whole sequences (prefill). recurrence.hpp has the formulas.
/// The result does not depend on the chunk that a backend works in.

namespace mambatile {
inline namespace v0 {

/// Arithmetic of matrix products with f32 operands.
enum class products : std::uint8_t {
  accurate,  ///< f32 throughout
  tf32,      ///< operands may be rounded to tf32 where the device has it
};

[[nodiscard]] constexpr std::string_view to_string(products value) noexcept {
  switch (value) {
    case products::accurate: return "accurate";
    case products::tf32: return "tf32";
  }
  return "unknown";
}

/// The tensors of one call. An absent tensor is a default-constructed view; which optional ones are
/// present must match the problem. b = batch, l = seqlen, h = nheads, p = headdim, g = ngroups,
/// n = dstate, s = sequences (cu_seqlens), r = s when cu_seqlens is given, else b.
///
/// Outer strides are free; x, z, out, B and C need stride 1 on their last axis. initial_states and
/// final_states may be the identical view (update in place). out may lie in the same buffer as
/// inputs where no element is shared; any other overlap of an output is refused. A slot is written
/// by one row at most; in place, no row reads a slot or row that another writes.
struct scan_arguments {
  const_tensor_view x = {};        ///< (b, l, h, p), io type
  const_tensor_view dt = {};       ///< (b, l, h), raw step
  const_tensor_view A = {};        ///< (h), f32, negative
  const_tensor_view B = {};        ///< (b, l, g, n), io type
  const_tensor_view C = {};        ///< (b, l, g, n), io type
  const_tensor_view D = {};        ///< (h) or (h, p); optional
  const_tensor_view z = {};        ///< (b, l, h, p), io type; optional
  const_tensor_view dt_bias = {};  ///< (h); optional
  /// (r, h, p, n), or with state_source a pool (slots, h, p, n); optional. With seq_idx it belongs
  /// to the first sequence of each row.
  const_tensor_view initial_states = {};
  /// (s + 1), i32; starts at 0, non-decreasing, ends at or before l. Tokens beyond are untouched.
  const_tensor_view cu_seqlens = {};
  /// (b, l), i32; non-decreasing over its entries >= 0. A token of -1 gets out = 0 and neither
  /// reads nor changes a state; it counts as a token of the row for intermediate_states. A row of
  /// padding alone hands its initial state on.
  const_tensor_view seq_idx = {};
  const_tensor_view state_source = {};  ///< (r), i32: slot of initial_states, -1 = start from zero
  const_tensor_view state_target = {};  ///< (r), i32: slot of final_states, -1 = write none

  tensor_view out = {};           ///< (b, l, h, p), io type
  tensor_view final_states = {};  ///< (r, h, p, n), or with state_target a pool; optional
  /// (b, l / k, h, p, n) with k = intermediate_every; optional. Row j holds the state after
  /// (j + 1) k tokens of the row. With cu_seqlens, sequence i's j-th snapshot is at row
  /// cu_seqlens[i] / k + j, counted from the sequence's start; rows that belong to no snapshot are
  /// untouched.
  tensor_view intermediate_states = {};
  /// (r, h), f32; optional: the factor with which the initial state enters the final state,
  /// exp(sum of delta A). With seq_idx it is 0 where the row holds more than one sequence.
  /// Written for every row, those without a state_target included.
  tensor_view total_decay = {};
};

/// What a plan depends on. The max_* fields are capacities: one plan serves every smaller call.
struct scan_problem {
  using arguments_type = scan_arguments;
  static constexpr std::string_view operator_name = "chunk_scan";

  std::int64_t max_batch = 0;      ///< rows (1 with cu_seqlens)
  std::int64_t max_seqlen = 0;     ///< tokens per row
  std::int64_t max_sequences = 0;  ///< sequences in cu_seqlens; 0 otherwise
  std::int64_t nheads = 0;
  std::int64_t headdim = 0;
  std::int64_t ngroups = 1;
  std::int64_t dstate = 0;

  dtype io = dtype::f32;     ///< x, z, B, C, out
  dtype dt = dtype::f32;     ///< dt
  dtype state = dtype::f32;  ///< initial, final and intermediate states
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
  bool has_total_decay = false;
  std::int64_t intermediate_every = 0;  ///< k of intermediate_states; 0 = none
  packing pack = packing::dense;

  products math = products::accurate;
  bool batch_invariant = false;  ///< bits independent of batch neighbours (always so on the CPU)
  int chunk_size = 0;            ///< hint; 0 = the plan chooses
  int threads = 0;               ///< host: most threads a call uses; 0 = all of the backend's

  friend bool operator==(scan_problem const&, scan_problem const&) = default;
};

/// One line with every field that differs from its default.
[[nodiscard]] MAMBATILE_EXPORT std::string to_string(scan_problem const& problem);

using scan_plan = operator_plan<scan_problem>;
extern template class MAMBATILE_EXPORT operator_plan<scan_problem>;

/// What the tensors of a call do not tell.
struct scan_options {
  bool dt_softplus = false;
  std::array<float, 2> dt_limit = {0.0F, std::numeric_limits<float>::infinity()};
  std::int64_t intermediate_every = 0;
  products math = products::accurate;
  bool batch_invariant = false;
  int chunk_size = 0;
  int threads = 0;
};

/// The smallest problem that covers one call: sizes, types and presence are read off the tensors.
/// Reads no tensor's data. Shapes that do not fit together are found when the plan executes.
/// @throws invalid_argument where a needed tensor is absent or has the wrong rank.
[[nodiscard]] MAMBATILE_EXPORT scan_problem make_problem(scan_arguments const& arguments,
                                                         scan_options const& options = {});

}  // namespace v0
}  // namespace mambatile

template <>
struct std::hash<mambatile::scan_problem> {
  [[nodiscard]] MAMBATILE_EXPORT std::size_t operator()(
      mambatile::scan_problem const& problem) const noexcept;
};
