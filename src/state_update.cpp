#include <mambatile/state_update.hpp>

#include <cstddef>
#include <functional>
#include <string>

#include "argument_checks.hpp"
#include "operator_plan.hpp"
#include "problem_fields.hpp"
#include "recurrence_problems.hpp"
#include "state_update_forms.hpp"

namespace mambatile {
inline namespace v0 {

MAMBATILE_INSTANTIATE_OPERATOR(state_update_problem);

namespace {

// The one list of state_update_problem's fields, for printing and hashing.
template <class Visitor>
void for_each_field(state_update_problem const& problem, Visitor const& visit) {
  detail::for_each_recurrence_field(problem, visit);
  visit("per_token_source", problem.per_token_source);
  visit("source_has_start", problem.source_has_start);
  visit("per_token_target", problem.per_token_target);
  visit("skip_padding", problem.skip_padding);
  visit("state_rounding", problem.state_rounding);
  visit("has_row_ids", problem.has_row_ids);
  visit("untied_dt", problem.untied_dt);
  visit("untied_A", problem.untied_A);
}

}  // namespace

std::string to_string(state_update_problem const& problem) {
  return detail::problem_string(problem, [](state_update_problem const& each, auto const& visit) {
    for_each_field(each, visit);
  });
}

state_update_problem make_problem(state_update_arguments const& given,
                                  state_update_options const& options) {
  detail::argument_checker const checker(state_update_problem::operator_name, given.x.where);
  bool const has_token_axis = given.x.rank != 3;
  if (has_token_axis) checker.rank({"x", given.x}, 4, "(batch, seqlen, nheads, headdim)");
  checker.rank({"B", given.B}, has_token_axis ? 4 : 3,
               has_token_axis ? "(batch, seqlen, ngroups, dstate)" : "(batch, ngroups, dstate)");
  bool const untied_dt = given.dt.rank == given.x.rank;
  if (!untied_dt) {
    checker.rank({"dt", given.dt}, has_token_axis ? 3 : 2,
                 has_token_axis ? "(batch, seqlen, nheads)" : "(batch, nheads)");
  }

  auto const arguments = detail::with_token_axis(given);
  auto problem = detail::recurrence_problem<state_update_problem>(arguments, options);
  problem.untied_dt = untied_dt || arguments.dt_bias.rank == 2;
  problem.untied_A = arguments.A.rank == 3;
  problem.per_token_source = arguments.state_source ? arguments.state_source.rank == 2
                                                    : arguments.initial_states.rank == 5;
  problem.per_token_target =
      arguments.state_target ? arguments.state_target.rank == 2 : arguments.final_states.rank == 5;
  problem.source_has_start = options.source_has_start;
  problem.skip_padding = options.skip_padding;
  problem.state_rounding = options.state_rounding;
  problem.has_row_ids = static_cast<bool>(arguments.row_ids);
  return problem;
}

}  // namespace v0
}  // namespace mambatile

std::size_t std::hash<mambatile::state_update_problem>::operator()(
    mambatile::state_update_problem const& problem) const noexcept {
  return mambatile::detail::problem_hash(
      [&](auto const& visit) { mambatile::for_each_field(problem, visit); });
}
