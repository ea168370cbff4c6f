#include <mambatile/scan.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "argument_checks.hpp"
#include "operator_plan.hpp"
#include "problem_fields.hpp"
#include "recurrence_problems.hpp"

namespace mambatile {
inline namespace v0 {

MAMBATILE_INSTANTIATE_OPERATOR(scan_problem);

std::string to_string(scan_problem const& problem) {
  return detail::problem_string(problem, [](scan_problem const& each, auto const& visit) {
    detail::for_each_scan_field(each, visit);
  });
}

scan_problem make_problem(scan_arguments const& arguments, scan_options const& options) {
  detail::argument_checker const checker(scan_problem::operator_name, arguments.x.where);
  checker.rank({"x", arguments.x}, 4, "(batch, seqlen, nheads, headdim)");
  checker.rank({"dt", arguments.dt}, 3, "(batch, seqlen, nheads)");
  checker.rank({"B", arguments.B}, 4, "(batch, seqlen, ngroups, dstate)");

  auto problem = detail::recurrence_problem<scan_problem>(arguments, options);
  if (!arguments.final_states && arguments.intermediate_states) {
    problem.state = arguments.intermediate_states.type;
  }
  problem.has_total_decay = static_cast<bool>(arguments.total_decay);
  problem.intermediate_every = options.intermediate_every;
  detail::read_packing(checker, arguments, problem);
  problem.math = options.math;
  problem.batch_invariant = options.batch_invariant;
  problem.chunk_size = options.chunk_size;
  return problem;
}

}  // namespace v0
}  // namespace mambatile

std::size_t std::hash<mambatile::scan_problem>::operator()(
    mambatile::scan_problem const& problem) const noexcept {
  return mambatile::detail::problem_hash(
      [&](auto const& visit) { mambatile::detail::for_each_scan_field(problem, visit); });
}
