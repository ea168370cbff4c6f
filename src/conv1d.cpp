#include <mambatile/conv1d.hpp>

#include <cstddef>
#include <functional>
#include <string>

#include "argument_checks.hpp"
#include "conv1d_forms.hpp"
#include "operator_plan.hpp"
#include "problem_fields.hpp"
#include "sequence_rules.hpp"

namespace mambatile {
inline namespace v0 {

MAMBATILE_INSTANTIATE_OPERATOR(conv1d_problem);
MAMBATILE_INSTANTIATE_OPERATOR(conv1d_update_problem);

namespace {

// The one list of the problems' fields, for printing, hashing and converting.
template <class Problem, class Visitor>
void for_each_shared_field(Problem& problem, Visitor const& visit) {
  visit("max_batch", problem.max_batch);
  visit("max_seqlen", problem.max_seqlen);
  visit("max_sequences", problem.max_sequences);
  visit("channels", problem.channels);
  visit("width", problem.width);
  visit("state_len", problem.state_len);
  visit("io", problem.io);
  visit("weight", problem.weight);
  visit("bias", problem.bias);
  visit("state", problem.state);
  visit("act", problem.act);
  visit("has_bias", problem.has_bias);
  visit("has_initial_states", problem.has_initial_states);
  visit("has_final_states", problem.has_final_states);
  visit("has_state_source", problem.has_state_source);
  visit("has_state_target", problem.has_state_target);
  visit("circular", problem.circular);
  visit("pack", problem.pack);
  visit("threads", problem.threads);
}

template <class Visitor>
void for_each_field(conv1d_problem const& problem, Visitor const& visit) {
  for_each_shared_field(problem, visit);
}

template <class Visitor>
void for_each_field(conv1d_update_problem const& problem, Visitor const& visit) {
  for_each_shared_field(problem, visit);
  visit("per_token_source", problem.per_token_source);
  visit("source_has_start", problem.source_has_start);
  visit("per_token_target", problem.per_token_target);
  visit("has_num_accepted", problem.has_num_accepted);
  visit("has_num_previous", problem.has_num_previous);
  visit("skip_padding", problem.skip_padding);
  visit("max_targets", problem.max_targets);
}

// What both operators read off their tensors; x has its token axis.
template <class Problem, class Arguments>
Problem shared_problem(Arguments const& arguments, const_tensor_view const& x) {
  detail::argument_checker const checker(Problem::operator_name, x.where);
  checker.rank({"weight", arguments.weight}, 2, "(channels, width)");

  Problem problem;
  problem.max_batch = x.extent(0);
  problem.max_seqlen = x.extent(1);
  problem.channels = x.extent(2);
  problem.width = arguments.weight.extent(1);
  problem.io = x.type;
  problem.weight = arguments.weight.type;
  problem.has_bias = static_cast<bool>(arguments.bias);
  if (problem.has_bias) problem.bias = arguments.bias.type;
  problem.has_initial_states = static_cast<bool>(arguments.initial_states);
  problem.has_final_states = static_cast<bool>(arguments.final_states);
  for (detail::named_tensor const& states :
       {detail::named_tensor{"initial_states", arguments.initial_states},
        {"final_states", arguments.final_states}}) {
    if (!states.view) continue;
    if (states.view.rank != 4) checker.rank(states, 3, "(rows, channels, state_len)");
    problem.state = states.view.type;
    problem.state_len = states.view.extent(states.view.rank - 1);
  }
  problem.has_state_source = static_cast<bool>(arguments.state_source);
  problem.has_state_target = static_cast<bool>(arguments.state_target);
  problem.circular = static_cast<bool>(arguments.cache_seqlens);
  detail::read_packing(checker, arguments, problem);
  return problem;
}

}  // namespace

std::string to_string(conv1d_problem const& problem) {
  return detail::problem_string(
      problem, [](conv1d_problem const& each, auto const& visit) { for_each_field(each, visit); });
}

std::string to_string(conv1d_update_problem const& problem) {
  return detail::problem_string(problem, [](conv1d_update_problem const& each, auto const& visit) {
    for_each_field(each, visit);
  });
}

conv1d_problem make_problem(conv1d_arguments const& arguments, conv1d_options const& options) {
  detail::argument_checker const checker(conv1d_problem::operator_name, arguments.x.where);
  checker.rank({"x", arguments.x}, 3, "(batch, seqlen, channels)");
  auto problem = shared_problem<conv1d_problem>(arguments, arguments.x);
  problem.act = options.act;
  problem.threads = options.threads;
  return problem;
}

conv1d_update_problem make_problem(conv1d_update_arguments const& arguments,
                                   conv1d_update_options const& options) {
  detail::argument_checker const checker(conv1d_update_problem::operator_name, arguments.x.where);
  if (arguments.x.rank != 2) checker.rank({"x", arguments.x}, 3, "(batch, seqlen, channels)");
  auto problem =
      shared_problem<conv1d_update_problem>(arguments, detail::with_token_axis(arguments.x));
  problem.has_num_accepted = static_cast<bool>(arguments.num_accepted);
  problem.has_num_previous = static_cast<bool>(arguments.num_previous);
  problem.per_token_source = arguments.state_source ? arguments.state_source.rank == 2
                                                    : arguments.initial_states.rank == 4;
  problem.per_token_target =
      arguments.state_target ? arguments.state_target.rank == 2 : arguments.final_states.rank == 4;
  if (problem.per_token_target) {
    problem.max_targets = arguments.state_target ? arguments.state_target.extent(1)
                                                 : arguments.final_states.extent(1);
  }
  problem.act = options.act;
  problem.source_has_start = options.source_has_start;
  problem.skip_padding = options.skip_padding;
  problem.threads = options.threads;
  return problem;
}

namespace detail {

conv1d_update_problem as_update(conv1d_problem const& problem) {
  return {.max_batch = problem.max_batch,
          .max_seqlen = problem.max_seqlen,
          .max_sequences = problem.max_sequences,
          .channels = problem.channels,
          .width = problem.width,
          .state_len = problem.state_len,
          .io = problem.io,
          .weight = problem.weight,
          .bias = problem.bias,
          .state = problem.state,
          .act = problem.act,
          .has_bias = problem.has_bias,
          .has_initial_states = problem.has_initial_states,
          .has_final_states = problem.has_final_states,
          .has_state_source = problem.has_state_source,
          .has_state_target = problem.has_state_target,
          .circular = problem.circular,
          .pack = problem.pack,
          .threads = problem.threads};
}

conv1d_update_arguments as_update(conv1d_arguments const& arguments) {
  return {.x = arguments.x,
          .weight = arguments.weight,
          .bias = arguments.bias,
          .initial_states = arguments.initial_states,
          .cu_seqlens = arguments.cu_seqlens,
          .seq_idx = arguments.seq_idx,
          .state_source = arguments.state_source,
          .state_target = arguments.state_target,
          .cache_seqlens = arguments.cache_seqlens,
          .num_accepted = {},
          .num_previous = {},
          .out = arguments.out,
          .final_states = arguments.final_states};
}

}  // namespace detail

}  // namespace v0
}  // namespace mambatile

std::size_t std::hash<mambatile::conv1d_problem>::operator()(
    mambatile::conv1d_problem const& problem) const noexcept {
  return mambatile::detail::problem_hash(
      [&](auto const& visit) { mambatile::for_each_field(problem, visit); });
}

std::size_t std::hash<mambatile::conv1d_update_problem>::operator()(
    mambatile::conv1d_update_problem const& problem) const noexcept {
  return mambatile::detail::problem_hash(
      [&](auto const& visit) { mambatile::for_each_field(problem, visit); });
}
