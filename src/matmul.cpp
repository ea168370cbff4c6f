#include <mambatile/matmul.hpp>

#include <cmath>
#include <cstddef>
#include <functional>
#include <string>

#include <fmt/format.h>

#include "argument_checks.hpp"
#include "operator_plan.hpp"
#include "problem_checks.hpp"
#include "problem_fields.hpp"

namespace mambatile {
inline namespace v0 {

MAMBATILE_INSTANTIATE_OPERATOR(matmul_problem);

namespace {

// The one list of matmul_problem's fields, for printing and hashing.
template <class Visitor>
void for_each_field(matmul_problem const& problem, Visitor const& visit) {
  visit("max_rows", problem.max_rows);
  visit("in_features", problem.in_features);
  visit("out_features", problem.out_features);
  visit("x", problem.x);
  visit("weight", problem.weight);
  visit("bias", problem.bias);
  visit("out", problem.out);
  visit("input_scale", problem.input_scale);
  visit("has_bias", problem.has_bias);
  visit("has_column_scale", problem.has_column_scale);
  visit("accumulate", problem.accumulate);
  visit("threads", problem.threads);
}

}  // namespace

std::string to_string(matmul_problem const& problem) {
  return detail::problem_string(
      problem, [](matmul_problem const& each, auto const& visit) { for_each_field(each, visit); });
}

matmul_problem make_problem(matmul_arguments const& arguments, matmul_options const& options) {
  detail::argument_checker const checker(matmul_problem::operator_name, arguments.x.where);
  checker.rank({"x", arguments.x}, 2, "(rows, in_features)");
  checker.rank({"weight", arguments.weight}, 2, "(out_features, in_features)");
  checker.rank({"out", arguments.out}, 2, "(rows, out_features)");

  matmul_problem problem;
  problem.max_rows = arguments.x.extent(0);
  problem.in_features = arguments.x.extent(1);
  problem.out_features = arguments.weight.extent(0);
  problem.x = arguments.x.type;
  problem.weight = arguments.weight.type;
  problem.out = arguments.out.type;
  problem.has_bias = static_cast<bool>(arguments.bias);
  if (problem.has_bias) problem.bias = arguments.bias.type;
  problem.has_column_scale = static_cast<bool>(arguments.column_scale);
  problem.input_scale = options.input_scale;
  problem.accumulate = options.accumulate;
  problem.threads = options.threads;
  return problem;
}

namespace detail {

void validate(matmul_problem const& problem) {
  problem_checker const checker(matmul_problem::operator_name);
  checker.not_negative("max_rows", problem.max_rows);
  checker.not_negative("in_features", problem.in_features);
  checker.not_negative("out_features", problem.out_features);
  checker.not_negative("threads", problem.threads);
  checker.product("in_features * out_features", {problem.in_features, problem.out_features});
  checker.floating("x", problem.x);
  checker.floating("weight", problem.weight);
  checker.floating("bias", problem.bias);
  checker.floating("out", problem.out);
  if (!std::isfinite(problem.input_scale)) {
    checker.fail(fmt::format("input_scale = {}, but it must be finite", problem.input_scale));
  }
}

void check(matmul_problem const& problem, matmul_arguments const& arguments, device where) {
  argument_checker const checker(matmul_problem::operator_name, where);
  named_tensor const x{"x", arguments.x};
  named_tensor const weight{"weight", arguments.weight};
  named_tensor const bias{"bias", arguments.bias};
  named_tensor const column_scale{"column_scale", arguments.column_scale};
  named_tensor const out{"out", arguments.out};

  checker.presence(bias, problem.has_bias, "has_bias", problem.has_bias);
  checker.presence(column_scale, problem.has_column_scale, "has_column_scale",
                   problem.has_column_scale);
  checker.rank(x, 2, "(rows, in_features)");
  expected_axis const rows{"rows", arguments.x.extent(0)};
  expected_axis const in_features{"in_features", problem.in_features};
  expected_axis const out_features{"out_features", problem.out_features};
  checker.tensor(x, problem.x, {rows, in_features});
  checker.tensor(weight, problem.weight, {out_features, in_features});
  checker.tensor(out, problem.out, {rows, out_features});
  for (auto const& tensor : {x, weight, out}) checker.inner_stride(tensor);
  if (problem.has_bias) checker.tensor(bias, problem.bias, {out_features});
  if (problem.has_column_scale) checker.tensor(column_scale, dtype::f32, {out_features});
  checker.capacity("rows", rows.extent, "max_rows", problem.max_rows);
  checker.distinct_elements(out);
  for (auto const& input : {x, weight, bias, column_scale}) checker.disjoint(out, input);
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile

std::size_t std::hash<mambatile::matmul_problem>::operator()(
    mambatile::matmul_problem const& problem) const noexcept {
  return mambatile::detail::problem_hash(
      [&](auto const& visit) { mambatile::for_each_field(problem, visit); });
}
