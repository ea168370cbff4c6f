#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include <fmt/format.h>

#include <mambatile/errors.hpp>
#include <mambatile/norm.hpp>

#include "argument_checks.hpp"
#include "norm_rows.hpp"
#include "operator_checks.hpp"
#include "problem_checks.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {

void validate(gated_rms_norm_problem const& problem) {
  problem_checker const checker(gated_rms_norm_problem::operator_name);
  checker.not_negative("max_rows", problem.max_rows);
  checker.not_negative("channels", problem.channels);
  checker.not_negative("group_size", problem.group_size);
  checker.not_negative("threads", problem.threads);
  if (problem.group_size != 0 && problem.channels % problem.group_size != 0) {
    checker.fail(fmt::format("group_size = {} does not divide channels = {}", problem.group_size,
                             problem.channels));
  }
  checker.floating("io", problem.io);
  checker.parameter_type("weight", problem.weight, problem.io);
  checker.parameter_type("bias", problem.bias, problem.io);
  if (!(problem.eps >= 0.0F) || std::isinf(problem.eps)) {
    checker.fail(fmt::format("eps = {}, but it must be a finite number >= 0", problem.eps));
  }
}

void check(gated_rms_norm_problem const& problem, gated_rms_norm_arguments const& arguments,
           device where) {
  argument_checker const checker(gated_rms_norm_problem::operator_name, where);
  checker.presence({"z", arguments.z}, problem.has_z, "has_z", problem.has_z);
  checker.presence({"bias", arguments.bias}, problem.has_bias, "has_bias", problem.has_bias);
  named_tensor const x{"x", arguments.x};
  if (arguments.x.rank < 2 || arguments.x.rank > max_rank) checker.rank(x, 2, "(rows, channels)");

  std::array<expected_axis, max_rank> shape;
  auto const rank = static_cast<std::size_t>(arguments.x.rank);
  for (std::size_t axis = 0; axis < rank; ++axis) {
    shape[axis] = {rank == 2 ? "rows" : "..", arguments.x.extents[axis]};
  }
  shape[rank - 1] = {"channels", problem.channels};
  std::span<expected_axis const> const as_x(shape.data(), rank);
  named_tensor const out{"out", arguments.out};
  for (named_tensor const& tensor : {x, named_tensor{"z", arguments.z}, out}) {
    if (tensor.name == "z" && !problem.has_z) continue;
    checker.tensor(tensor, problem.io, as_x);
    checker.inner_stride(tensor);
  }
  checker.tensor({"weight", arguments.weight}, problem.weight, {{"channels", problem.channels}});
  if (problem.has_bias) {
    checker.tensor({"bias", arguments.bias}, problem.bias, {{"channels", problem.channels}});
  }
  checker.capacity("rows", norm_rows(arguments.x), "max_rows", problem.max_rows);

  checker.distinct_elements(out);
  for (named_tensor const& input : {x,
                                    named_tensor{"z", arguments.z},
                                    {"weight", arguments.weight},
                                    {"bias", arguments.bias}}) {
    checker.disjoint(out, input);
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
