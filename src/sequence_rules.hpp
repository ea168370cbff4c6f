#pragma once

#include <fmt/format.h>

#include <mambatile/packing.hpp>

#include "argument_checks.hpp"
#include "problem_checks.hpp"

// What operators over sequences share, the convolutions and the recurrence alike: how sequences are
// packed, and pools of states. Written once, for problems and arguments that name these fields
// alike.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// A call is packed in one way at most.
template <class Arguments>
void check_one_packing(argument_checker const& checker, Arguments const& arguments) {
  if (arguments.cu_seqlens && arguments.seq_idx) {
    checker.fail("cu_seqlens and seq_idx were both given; a call is packed one way or the other");
  }
}

/// pack and max_sequences, as a call's tensors give them.
template <class Arguments, class Problem>
void read_packing(argument_checker const& checker, Arguments const& arguments, Problem& problem) {
  if (arguments.cu_seqlens) {
    checker.rank({"cu_seqlens", arguments.cu_seqlens}, 1, "(sequences + 1)");
    problem.pack = packing::cu_seqlens;
    problem.max_sequences =
        arguments.cu_seqlens.extent(0) > 0 ? arguments.cu_seqlens.extent(0) - 1 : 0;
  } else if (arguments.seq_idx) {
    problem.pack = packing::seq_idx;
  }
}

template <class Problem>
void validate_packing(problem_checker const& checker, Problem const& problem) {
  checker.enumerator("pack", problem.pack, packing::seq_idx);
  checker.not_negative("max_sequences", problem.max_sequences);
  if (problem.pack == packing::cu_seqlens && problem.max_batch > 1) {
    checker.fail(
        fmt::format("max_batch = {}, but packed sequences (pack = cu_seqlens) lie in one "
                    "row",
                    problem.max_batch));
  }
  if (problem.pack != packing::cu_seqlens && problem.max_sequences != 0) {
    checker.fail(fmt::format("max_sequences = {} belongs to pack = cu_seqlens, but pack = {}",
                             problem.max_sequences, to_string(problem.pack)));
  }
}

template <class Problem>
void validate_pools(problem_checker const& checker, Problem const& problem) {
  if (problem.has_state_source && !problem.has_initial_states) {
    checker.fail("has_state_source = true needs has_initial_states = true, the pool it reads from");
  }
  if (problem.has_state_target && !problem.has_final_states) {
    checker.fail("has_state_target = true needs has_final_states = true, the pool it writes to");
  }
}

template <class Problem>
void validate_skip_padding(problem_checker const& checker, Problem const& problem) {
  if (problem.skip_padding &&
      !(problem.has_state_source && problem.has_state_target == problem.has_final_states)) {
    checker.fail(
        "skip_padding = true needs has_state_source = true, and has_state_target = true where "
        "states are written: a row is padding where all its slots are -1");
  }
}

/// Presence of the index arrays that packing needs, and of no other.
template <class Problem, class Arguments>
void check_packing_presence(argument_checker const& checker, Problem const& problem,
                            Arguments const& arguments) {
  auto const pack = to_string(problem.pack);
  checker.presence({"cu_seqlens", arguments.cu_seqlens}, problem.pack == packing::cu_seqlens,
                   "pack", pack);
  checker.presence({"seq_idx", arguments.seq_idx}, problem.pack == packing::seq_idx, "pack", pack);
}

/// Type and shape of those index arrays in a call with this many rows and tokens.
template <class Problem, class Arguments>
void check_packing_tensors(argument_checker const& checker, Problem const& problem,
                           Arguments const& arguments, expected_axis const& batch,
                           expected_axis const& seqlen) {
  if (problem.pack == packing::cu_seqlens) {
    check_cu_seqlens_tensor(checker, arguments.cu_seqlens, batch.extent, seqlen.extent,
                            problem.max_sequences);
  }
  if (problem.pack == packing::seq_idx) {
    checker.tensor({"seq_idx", arguments.seq_idx}, dtype::i32, {batch, seqlen});
  }
}

/// Entries of state_source and state_target, each within its pool.
template <class Problem, class Arguments>
void check_pool_slots(argument_checker const& checker, Problem const& problem,
                      Arguments const& arguments) {
  if (problem.has_state_source) {
    check_slots(checker, {"state_source", arguments.state_source},
                arguments.initial_states.extent(0));
  }
  if (problem.has_state_target) {
    check_slots(checker, {"state_target", arguments.state_target},
                arguments.final_states.extent(0));
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
