#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/state_update.hpp>

#include "argument_checks.hpp"
#include "operator_checks.hpp"
#include "overlap.hpp"
#include "problem_checks.hpp"
#include "recurrence_problems.hpp"
#include "sequence_rules.hpp"
#include "state_ends.hpp"
#include "state_update_forms.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

using problem_type = state_update_problem;
using arguments_type = state_update_arguments;

void check_overlaps(argument_checker const& checker, arguments_type const& arguments) {
  std::array<named_tensor, 13> const inputs = {{
      {"x", arguments.x},
      {"dt", arguments.dt},
      {"A", arguments.A},
      {"B", arguments.B},
      {"C", arguments.C},
      {"D", arguments.D},
      {"z", arguments.z},
      {"dt_bias", arguments.dt_bias},
      {"state_source", arguments.state_source},
      {"state_target", arguments.state_target},
      {"num_accepted", arguments.num_accepted},
      {"row_ids", arguments.row_ids},
      {"initial_states", arguments.initial_states},
  }};
  std::array<named_tensor, 2> const outputs = {
      {{"out", arguments.out}, {"final_states", arguments.final_states}}};
  checker.overlaps(outputs, inputs);
}

void check_all_accepted(argument_checker const& checker, problem_type const& problem,
                        arguments_type const& arguments, std::int64_t batch) {
  auto const accepted = accepted_of(problem, arguments);
  for (std::int64_t row = 0; row < batch; ++row) {
    if (is_padding(problem, arguments, row)) continue;
    if (problem.has_state_source) {
      check_accepted(checker, accepted, row, "state_source", arguments.state_source.extent(1));
    } else {
      check_accepted(checker, accepted, row, "initial_states", arguments.initial_states.extent(1));
    }
  }
}

}  // namespace

void check_indices(problem_type const& problem, arguments_type const& given, void* scratch) {
  argument_checker const checker(problem_type::operator_name, device{});
  auto const arguments = with_token_axis(given);
  auto const batch = arguments.x.extent(0);
  check_pool_slots(checker, problem, arguments);
  if (problem.per_token_source) check_all_accepted(checker, problem, arguments, batch);
  check_slot_ends(checker, arguments, accepted_of(problem, arguments), scratch);
}

void validate(problem_type const& problem) {
  problem_checker const checker(problem_type::operator_name);
  validate_recurrence(checker, problem);
  checker.enumerator("state_rounding", problem.state_rounding, rounding::stochastic);
  if (problem.per_token_source && !problem.has_initial_states) {
    checker.fail("per_token_source = true needs has_initial_states = true, the states it picks");
  }
  if (problem.source_has_start && !problem.per_token_source) {
    checker.fail("source_has_start = true needs per_token_source = true, the states it is one of");
  }
  if (problem.per_token_target && !problem.has_final_states) {
    checker.fail("per_token_target = true needs has_final_states = true, the states it writes");
  }
  validate_skip_padding(checker, problem);
  bool const is_stochastic = problem.state_rounding == rounding::stochastic;
  if (is_stochastic && (problem.state == dtype::f32 || !problem.has_final_states)) {
    checker.fail(fmt::format(
        "state_rounding = stochastic needs a state of bf16 or f16 that is written, but state = {} "
        "and has_final_states = {}",
        to_string(problem.state), problem.has_final_states));
  }
  if (problem.has_row_ids && !is_stochastic) {
    checker.fail("has_row_ids = true belongs to state_rounding = stochastic");
  }
}

support general_support(problem_type const& problem) {
  if (problem.untied_dt) {
    return {false, fmt::format("{}: untied dt, a step size per channel, is not supported; expected "
                               "one per head",
                               problem_type::operator_name)};
  }
  if (problem.untied_A) {
    return {false, fmt::format("{}: untied A, a decay per state element, is not supported; "
                               "expected one per head, shape (nheads)",
                               problem_type::operator_name)};
  }
  return {true, {}};
}

std::size_t check_bytes(problem_type const& problem, device where) {
  if (!problem.has_state_target || where.kind != device_kind::host) return 0;
  return slot_scratch_bytes(problem.max_batch *
                            (problem.per_token_target ? problem.max_seqlen : 1));
}

void check(problem_type const& problem, arguments_type const& given, device where) {
  argument_checker const checker(problem_type::operator_name, where);
  check_recurrence_presence(checker, problem, given);
  checker.presence({"num_accepted", given.num_accepted}, problem.per_token_source,
                   "per_token_source", problem.per_token_source);
  checker.presence({"row_ids", given.row_ids}, problem.has_row_ids, "has_row_ids",
                   problem.has_row_ids);
  if (given.x.rank == 3) {
    // With the token axis left out, the others' ranks are checked before one is put in.
    checker.rank({"dt", given.dt}, 2, "(batch, nheads)");
    checker.rank({"B", given.B}, 3, "(batch, ngroups, dstate)");
    checker.rank({"C", given.C}, 3, "(batch, ngroups, dstate)");
    checker.rank({"out", given.out}, 3, "(batch, nheads, headdim)");
    if (problem.has_z) checker.rank({"z", given.z}, 3, "(batch, nheads, headdim)");
  }
  auto const arguments = with_token_axis(given);
  check_recurrence_tensors(checker, problem, arguments);

  auto const batch = arguments.x.extent(0);
  std::array<expected_axis, 3> const inner = {
      {{"nheads", problem.nheads}, {"headdim", problem.headdim}, {"dstate", problem.dstate}}};
  if (problem.has_initial_states) {
    check_state_end(checker, problem.state,
                    {.states = {"initial_states", arguments.initial_states},
                     .slots = {"state_source", arguments.state_source},
                     .has_slots = problem.has_state_source,
                     .per_token = problem.per_token_source},
                    batch, inner);
  }
  if (problem.has_final_states) {
    check_state_end(checker, problem.state,
                    {.states = {"final_states", arguments.final_states},
                     .slots = {"state_target", arguments.state_target},
                     .has_slots = problem.has_state_target,
                     .per_token = problem.per_token_target,
                     .columns = arguments.x.extent(1)},
                    batch, inner);
  }
  for (named_tensor const& tensor :
       {named_tensor{"num_accepted", arguments.num_accepted}, {"row_ids", arguments.row_ids}}) {
    if (tensor.view) checker.tensor(tensor, dtype::i32, {{"batch", batch}});
  }
  check_overlaps(checker, arguments);
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
