#include <mambatile/norm.hpp>

#include <cstddef>
#include <functional>
#include <string>

#include "argument_checks.hpp"
#include "norm_rows.hpp"
#include "operator_plan.hpp"
#include "problem_fields.hpp"

namespace mambatile {
inline namespace v0 {

MAMBATILE_INSTANTIATE_OPERATOR(gated_rms_norm_problem);

namespace {

// The one list of the problem's fields, for printing and hashing.
template <class Visitor>
void for_each_field(gated_rms_norm_problem const& problem, Visitor const& visit) {
  visit("max_rows", problem.max_rows);
  visit("channels", problem.channels);
  visit("group_size", problem.group_size);
  visit("io", problem.io);
  visit("weight", problem.weight);
  visit("bias", problem.bias);
  visit("eps", problem.eps);
  visit("norm_before_gate", problem.norm_before_gate);
  visit("has_z", problem.has_z);
  visit("has_bias", problem.has_bias);
  visit("threads", problem.threads);
}

}  // namespace

std::string to_string(gated_rms_norm_problem const& problem) {
  return detail::problem_string(problem, [](gated_rms_norm_problem const& each, auto const& visit) {
    for_each_field(each, visit);
  });
}

gated_rms_norm_problem make_problem(gated_rms_norm_arguments const& arguments,
                                    gated_rms_norm_options const& options) {
  detail::argument_checker const checker(gated_rms_norm_problem::operator_name, arguments.x.where);
  if (arguments.x.rank < 2 || arguments.x.rank > max_rank)
    checker.rank({"x", arguments.x}, 2, "(rows, channels)");
  checker.rank({"weight", arguments.weight}, 1, "(channels)");

  gated_rms_norm_problem problem;
  problem.max_rows = detail::norm_rows(arguments.x);
  problem.channels = arguments.x.extent(arguments.x.rank - 1);
  problem.io = arguments.x.type;
  problem.weight = arguments.weight.type;
  problem.has_z = static_cast<bool>(arguments.z);
  problem.has_bias = static_cast<bool>(arguments.bias);
  if (problem.has_bias) problem.bias = arguments.bias.type;
  problem.group_size = options.group_size;
  problem.eps = options.eps;
  problem.norm_before_gate = options.norm_before_gate;
  problem.threads = options.threads;
  return problem;
}

}  // namespace v0
}  // namespace mambatile

std::size_t std::hash<mambatile::gated_rms_norm_problem>::operator()(
    mambatile::gated_rms_norm_problem const& problem) const noexcept {
  return mambatile::detail::problem_hash(
      [&](auto const& visit) { mambatile::for_each_field(problem, visit); });
}
