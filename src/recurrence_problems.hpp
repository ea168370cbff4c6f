#pragma once

#include <string_view>

#include <fmt/format.h>

#include <mambatile/recurrence.hpp>

#include "argument_checks.hpp"
#include "problem_checks.hpp"
#include "sequence_rules.hpp"

// What the problems, arguments and rules of chunk_scan and state_update have in common, written
// once for both.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// Fields for printing, hashing and reading; of a problem that may be const.
template <class Problem, class Visitor>
void for_each_recurrence_field(Problem& problem, Visitor const& visit) {
  visit("max_batch", problem.max_batch);
  visit("max_seqlen", problem.max_seqlen);
  visit("nheads", problem.nheads);
  visit("headdim", problem.headdim);
  visit("ngroups", problem.ngroups);
  visit("dstate", problem.dstate);
  visit("io", problem.io);
  visit("dt", problem.dt);
  visit("state", problem.state);
  visit("D_type", problem.D_type);
  visit("dt_bias_type", problem.dt_bias_type);
  visit("dt_softplus", problem.dt_softplus);
  visit("dt_limit.lo", problem.dt_limit[0]);
  visit("dt_limit.hi", problem.dt_limit[1]);
  visit("D", problem.D);
  visit("has_z", problem.has_z);
  visit("has_dt_bias", problem.has_dt_bias);
  visit("has_initial_states", problem.has_initial_states);
  visit("has_final_states", problem.has_final_states);
  visit("has_state_source", problem.has_state_source);
  visit("has_state_target", problem.has_state_target);
  visit("threads", problem.threads);
}

/// The one list of scan_problem's fields.
template <class Problem, class Visitor>
void for_each_scan_field(Problem& problem, Visitor const& visit) {
  for_each_recurrence_field(problem, visit);
  visit("max_sequences", problem.max_sequences);
  visit("has_total_decay", problem.has_total_decay);
  visit("intermediate_every", problem.intermediate_every);
  visit("pack", problem.pack);
  visit("math", problem.math);
  visit("batch_invariant", problem.batch_invariant);
  visit("chunk_size", problem.chunk_size);
}

/// Fields that a call's tensors and options give. `arguments` have their token axis.
template <class Problem, class Arguments, class Options>
[[nodiscard]] Problem recurrence_problem(Arguments const& arguments, Options const& options) {
  Problem problem;
  problem.max_batch = arguments.x.extent(0);
  problem.max_seqlen = arguments.x.extent(1);
  problem.nheads = arguments.x.extent(2);
  problem.headdim = arguments.x.extent(3);
  problem.ngroups = arguments.B.extent(2);
  problem.dstate = arguments.B.extent(3);
  problem.io = arguments.x.type;
  problem.dt = arguments.dt.type;
  if (arguments.initial_states) problem.state = arguments.initial_states.type;
  if (arguments.final_states) problem.state = arguments.final_states.type;
  if (arguments.D) {
    problem.D = arguments.D.rank == 1 ? skip::per_head : skip::per_channel;
    problem.D_type = arguments.D.type;
  }
  problem.has_z = static_cast<bool>(arguments.z);
  problem.has_dt_bias = static_cast<bool>(arguments.dt_bias);
  if (problem.has_dt_bias) problem.dt_bias_type = arguments.dt_bias.type;
  problem.has_initial_states = static_cast<bool>(arguments.initial_states);
  problem.has_final_states = static_cast<bool>(arguments.final_states);
  problem.has_state_source = static_cast<bool>(arguments.state_source);
  problem.has_state_target = static_cast<bool>(arguments.state_target);
  problem.dt_softplus = options.dt_softplus;
  problem.dt_limit = options.dt_limit;
  problem.threads = options.threads;
  return problem;
}

template <class Problem>
void validate_recurrence(problem_checker const& checker, Problem const& problem) {
  checker.not_negative("max_batch", problem.max_batch);
  checker.not_negative("max_seqlen", problem.max_seqlen);
  checker.not_negative("nheads", problem.nheads);
  checker.not_negative("headdim", problem.headdim);
  checker.not_negative("dstate", problem.dstate);
  checker.not_negative("threads", problem.threads);
  checker.groups(problem.nheads, problem.ngroups);
  checker.product("max_batch * max_seqlen", {problem.max_batch, problem.max_seqlen});
  checker.product("nheads * headdim * dstate", {problem.nheads, problem.headdim, problem.dstate});
  checker.product("nheads * headdim", {problem.nheads, problem.headdim});
  checker.product("ngroups * dstate", {problem.ngroups, problem.dstate});
  checker.floating("io", problem.io);
  checker.floating("dt", problem.dt);
  checker.floating("state", problem.state);
  checker.enumerator("D", problem.D, skip::per_channel);
  checker.limits(problem.dt_limit);
  checker.parameter_type("D_type", problem.D_type, problem.io);
  checker.parameter_type("dt_bias_type", problem.dt_bias_type, problem.io);
  validate_pools(checker, problem);
}

template <class Problem, class Arguments>
void check_recurrence_presence(argument_checker const& checker, Problem const& problem,
                               Arguments const& arguments) {
  auto const flag = [&](named_tensor const& tensor, std::string_view field, bool expected) {
    checker.presence(tensor, expected, field, expected);
  };
  checker.presence({"D", arguments.D}, problem.D != skip::none, "D", to_string(problem.D));
  flag({"z", arguments.z}, "has_z", problem.has_z);
  flag({"dt_bias", arguments.dt_bias}, "has_dt_bias", problem.has_dt_bias);
  flag({"initial_states", arguments.initial_states}, "has_initial_states",
       problem.has_initial_states);
  flag({"final_states", arguments.final_states}, "has_final_states", problem.has_final_states);
  flag({"state_source", arguments.state_source}, "has_state_source", problem.has_state_source);
  flag({"state_target", arguments.state_target}, "has_state_target", problem.has_state_target);
}

/// Tensors other than states. `arguments` have their token axis.
template <class Problem, class Arguments>
void check_recurrence_tensors(argument_checker const& checker, Problem const& problem,
                              Arguments const& arguments) {
  checker.rank({"x", arguments.x}, 4, "(batch, seqlen, nheads, headdim)");
  expected_axis const batch{"batch", arguments.x.extent(0)};
  expected_axis const seqlen{"seqlen", arguments.x.extent(1)};
  expected_axis const nheads{"nheads", problem.nheads};
  expected_axis const headdim{"headdim", problem.headdim};
  expected_axis const ngroups{"ngroups", problem.ngroups};
  expected_axis const dstate{"dstate", problem.dstate};
  for (named_tensor const& tensor :
       {named_tensor{"x", arguments.x}, {"z", arguments.z}, {"out", arguments.out}}) {
    if (tensor.name == "z" && !problem.has_z) continue;
    checker.tensor(tensor, problem.io, {batch, seqlen, nheads, headdim});
    checker.inner_stride(tensor);
  }
  checker.tensor({"dt", arguments.dt}, problem.dt, {batch, seqlen, nheads});
  checker.tensor({"A", arguments.A}, dtype::f32, {nheads});
  for (named_tensor const& tensor : {named_tensor{"B", arguments.B}, {"C", arguments.C}}) {
    checker.tensor(tensor, problem.io, {batch, seqlen, ngroups, dstate});
    checker.inner_stride(tensor);
  }
  if (problem.D == skip::per_head) {
    checker.tensor({"D", arguments.D}, problem.D_type, {nheads});
  } else if (problem.D == skip::per_channel) {
    checker.tensor({"D", arguments.D}, problem.D_type, {nheads, headdim});
  }
  if (problem.has_dt_bias) {
    checker.tensor({"dt_bias", arguments.dt_bias}, problem.dt_bias_type, {nheads});
  }
  checker.capacity("batch", batch.extent, "max_batch", problem.max_batch);
  checker.capacity("seqlen", seqlen.extent, "max_seqlen", problem.max_seqlen);
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
