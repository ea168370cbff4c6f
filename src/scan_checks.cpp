#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/errors.hpp>
#include <mambatile/scan.hpp>

#include "argument_checks.hpp"
#include "operator_checks.hpp"
#include "overlap.hpp"
#include "problem_checks.hpp"
#include "recurrence_problems.hpp"
#include "sequence_rules.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

std::int64_t rows_of(scan_problem const& problem, scan_arguments const& arguments) {
  return problem.pack == packing::cu_seqlens ? arguments.cu_seqlens.extent(0) - 1
                                             : arguments.x.extent(0);
}

void check_presence(argument_checker const& checker, scan_problem const& problem,
                    scan_arguments const& arguments) {
  check_recurrence_presence(checker, problem, arguments);
  checker.presence({"total_decay", arguments.total_decay}, problem.has_total_decay,
                   "has_total_decay", problem.has_total_decay);
  checker.presence({"intermediate_states", arguments.intermediate_states},
                   problem.intermediate_every != 0, "intermediate_every",
                   problem.intermediate_every);
  check_packing_presence(checker, problem, arguments);
}

void check_states(argument_checker const& checker, scan_problem const& problem,
                  scan_arguments const& arguments, std::int64_t rows) {
  expected_axis const nheads{"nheads", problem.nheads};
  expected_axis const headdim{"headdim", problem.headdim};
  expected_axis const dstate{"dstate", problem.dstate};
  auto const states = [&](named_tensor const& tensor, bool is_pool) {
    checker.rank(tensor, 4,
                 is_pool ? "(slots, nheads, headdim, dstate)" : "(rows, nheads, headdim, dstate)");
    expected_axis const outer =
        is_pool ? expected_axis{"slots", tensor.view.extent(0)} : expected_axis{"rows", rows};
    checker.tensor(tensor, problem.state, {outer, nheads, headdim, dstate});
  };
  if (problem.has_initial_states) {
    states({"initial_states", arguments.initial_states}, problem.has_state_source);
  }
  if (problem.has_final_states) {
    states({"final_states", arguments.final_states}, problem.has_state_target);
  }
  if (problem.has_state_source) {
    checker.tensor({"state_source", arguments.state_source}, dtype::i32, {{"rows", rows}});
  }
  if (problem.has_state_target) {
    checker.tensor({"state_target", arguments.state_target}, dtype::i32, {{"rows", rows}});
  }
  if (problem.intermediate_every != 0) {
    checker.tensor(
        {"intermediate_states", arguments.intermediate_states}, problem.state,
        {{"batch", arguments.x.extent(0)},
         {"seqlen / intermediate_every", arguments.x.extent(1) / problem.intermediate_every},
         nheads,
         headdim,
         dstate});
  }
  if (problem.has_total_decay) {
    checker.tensor({"total_decay", arguments.total_decay}, dtype::f32, {{"rows", rows}, nheads});
  }
}

void check_overlaps(argument_checker const& checker, scan_arguments const& arguments) {
  std::array<named_tensor, 13> const inputs = {{
      {"x", arguments.x},
      {"dt", arguments.dt},
      {"A", arguments.A},
      {"B", arguments.B},
      {"C", arguments.C},
      {"D", arguments.D},
      {"z", arguments.z},
      {"dt_bias", arguments.dt_bias},
      {"cu_seqlens", arguments.cu_seqlens},
      {"seq_idx", arguments.seq_idx},
      {"state_source", arguments.state_source},
      {"state_target", arguments.state_target},
      {"initial_states", arguments.initial_states},
  }};
  std::array<named_tensor, 4> const outputs = {{
      {"out", arguments.out},
      {"final_states", arguments.final_states},
      {"intermediate_states", arguments.intermediate_states},
      {"total_decay", arguments.total_decay},
  }};
  checker.overlaps(outputs, inputs);
}

}  // namespace

void check_indices(scan_problem const& problem, scan_arguments const& arguments, void* scratch) {
  argument_checker const checker(scan_problem::operator_name, device{});
  if (problem.pack == packing::cu_seqlens) {
    check_cu_seqlens(checker, arguments.cu_seqlens, arguments.x.extent(1));
  }
  if (problem.pack == packing::seq_idx) check_seq_idx(checker, arguments.seq_idx);
  check_pool_slots(checker, problem, arguments);
  check_slot_ends(checker, arguments, {}, scratch);
}

void validate(scan_problem const& problem) {
  problem_checker const checker(scan_problem::operator_name);
  validate_recurrence(checker, problem);
  validate_packing(checker, problem);
  checker.not_negative("intermediate_every", problem.intermediate_every);
  checker.not_negative("chunk_size", problem.chunk_size);
  checker.enumerator("math", problem.math, products::tf32);
}

std::size_t check_bytes(scan_problem const& problem, device where) {
  if (!problem.has_state_target || where.kind != device_kind::host) return 0;
  return slot_scratch_bytes(problem.pack == packing::cu_seqlens ? problem.max_sequences
                                                                : problem.max_batch);
}

void check(scan_problem const& problem, scan_arguments const& arguments, device where) {
  argument_checker const checker(scan_problem::operator_name, where);
  check_one_packing(checker, arguments);
  check_presence(checker, problem, arguments);
  check_recurrence_tensors(checker, problem, arguments);

  expected_axis const batch{"batch", arguments.x.extent(0)};
  expected_axis const seqlen{"seqlen", arguments.x.extent(1)};
  check_packing_tensors(checker, problem, arguments, batch, seqlen);
  check_states(checker, problem, arguments, rows_of(problem, arguments));
  check_overlaps(checker, arguments);
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
