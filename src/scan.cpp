#include <mambatile/scan.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "argument_checks.hpp"
#include "operator_plan.hpp"
#include "problem_fields.hpp"

namespace mambatile {
inline namespace v0 {

MAMBATILE_INSTANTIATE_OPERATOR(scan_problem);

namespace {

// The one list of scan_problem's fields, for printing and hashing.
template <class Visitor>
void for_each_field(scan_problem const& problem, Visitor const& visit) {
  visit("max_batch", problem.max_batch);
  visit("max_seqlen", problem.max_seqlen);
  visit("max_sequences", problem.max_sequences);
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
  visit("has_total_decay", problem.has_total_decay);
  visit("intermediate_every", problem.intermediate_every);
  visit("pack", problem.pack);
  visit("math", problem.math);
  visit("batch_invariant", problem.batch_invariant);
  visit("chunk_size", problem.chunk_size);
  visit("threads", problem.threads);
}

}  // namespace

std::string to_string(scan_problem const& problem) {
  return detail::problem_string(
      problem, [](scan_problem const& each, auto const& visit) { for_each_field(each, visit); });
}

scan_problem make_problem(scan_arguments const& arguments, scan_options const& options) {
  detail::argument_checker const checker(scan_problem::operator_name, arguments.x.where);
  checker.rank({"x", arguments.x}, 4, "(batch, seqlen, nheads, headdim)");
  checker.rank({"dt", arguments.dt}, 3, "(batch, seqlen, nheads)");
  checker.rank({"B", arguments.B}, 4, "(batch, seqlen, ngroups, dstate)");

  scan_problem problem;
  problem.max_batch = arguments.x.extent(0);
  problem.max_seqlen = arguments.x.extent(1);
  problem.nheads = arguments.x.extent(2);
  problem.headdim = arguments.x.extent(3);
  problem.ngroups = arguments.B.extent(2);
  problem.dstate = arguments.B.extent(3);
  problem.io = arguments.x.type;
  problem.dt = arguments.dt.type;
  if (arguments.initial_states) problem.state = arguments.initial_states.type;
  if (arguments.intermediate_states) problem.state = arguments.intermediate_states.type;
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
  problem.has_total_decay = static_cast<bool>(arguments.total_decay);
  problem.intermediate_every = options.intermediate_every;
  if (arguments.cu_seqlens) {
    checker.rank({"cu_seqlens", arguments.cu_seqlens}, 1, "(sequences + 1)");
    problem.pack = packing::cu_seqlens;
    problem.max_sequences =
        arguments.cu_seqlens.extent(0) > 0 ? arguments.cu_seqlens.extent(0) - 1 : 0;
  } else if (arguments.seq_idx) {
    problem.pack = packing::seq_idx;
  }
  problem.dt_softplus = options.dt_softplus;
  problem.dt_limit = options.dt_limit;
  problem.math = options.math;
  problem.batch_invariant = options.batch_invariant;
  problem.chunk_size = options.chunk_size;
  problem.threads = options.threads;
  return problem;
}

}  // namespace v0
}  // namespace mambatile

std::size_t std::hash<mambatile::scan_problem>::operator()(
    mambatile::scan_problem const& problem) const noexcept {
  return mambatile::detail::problem_hash(
      [&](auto const& visit) { mambatile::for_each_field(problem, visit); });
}
