#include <mambatile/take_rows.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <fmt/format.h>

#include "argument_checks.hpp"
#include "operator_plan.hpp"
#include "problem_checks.hpp"
#include "problem_fields.hpp"

namespace mambatile {
inline namespace v0 {

MAMBATILE_INSTANTIATE_OPERATOR(take_rows_problem);

namespace {

// The one list of take_rows_problem's fields, for printing and hashing.
template <class Visitor>
void for_each_field(take_rows_problem const& problem, Visitor const& visit) {
  visit("max_rows", problem.max_rows);
  visit("row_length", problem.row_length);
  visit("source", problem.source);
  visit("out", problem.out);
  visit("threads", problem.threads);
}

}  // namespace

std::string to_string(take_rows_problem const& problem) {
  return detail::problem_string(problem, [](take_rows_problem const& each, auto const& visit) {
    for_each_field(each, visit);
  });
}

take_rows_problem make_problem(take_rows_arguments const& arguments, int threads) {
  detail::argument_checker const checker(take_rows_problem::operator_name, arguments.source.where);
  checker.rank({"source", arguments.source}, 2, "(source rows, row_length)");
  checker.rank({"index", arguments.index}, 1, "(rows)");
  checker.rank({"out", arguments.out}, 2, "(rows, row_length)");
  return {.max_rows = arguments.index.extent(0),
          .row_length = arguments.source.extent(1),
          .source = arguments.source.type,
          .out = arguments.out.type,
          .threads = threads};
}

namespace detail {

void validate(take_rows_problem const& problem) {
  problem_checker const checker(take_rows_problem::operator_name);
  checker.not_negative("max_rows", problem.max_rows);
  checker.not_negative("row_length", problem.row_length);
  checker.not_negative("threads", problem.threads);
  checker.floating("source", problem.source);
  checker.floating("out", problem.out);
}

void check(take_rows_problem const& problem, take_rows_arguments const& arguments, device where) {
  argument_checker const checker(take_rows_problem::operator_name, where);
  named_tensor const source{"source", arguments.source};
  named_tensor const index{"index", arguments.index};
  named_tensor const out{"out", arguments.out};

  checker.rank(source, 2, "(source rows, row_length)");
  checker.rank(index, 1, "(rows)");
  expected_axis const source_rows{"source rows", arguments.source.extent(0)};
  expected_axis const rows{"rows", arguments.index.extent(0)};
  expected_axis const row_length{"row_length", problem.row_length};
  checker.tensor(source, problem.source, {source_rows, row_length});
  checker.tensor(index, dtype::i32, {rows});
  checker.tensor(out, problem.out, {rows, row_length});
  checker.inner_stride(source);
  checker.inner_stride(out);
  checker.capacity("rows", rows.extent, "max_rows", problem.max_rows);
  checker.distinct_elements(out);
  checker.disjoint(out, source);
  checker.disjoint(out, index);
}

void check_indices(take_rows_problem const& /*problem*/, take_rows_arguments const& arguments,
                   void* /*scratch*/) {
  argument_checker const checker(take_rows_problem::operator_name, device{});
  auto const source_rows = arguments.source.extent(0);
  for (std::int64_t row = 0; row < arguments.index.extent(0); ++row) {
    auto const taken = index_at(arguments.index, row);
    if (taken < 0 || taken >= source_rows) {
      checker.fail(fmt::format("index[{}] = {} is out of range; source has {} rows", row, taken,
                               source_rows));
    }
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile

std::size_t std::hash<mambatile::take_rows_problem>::operator()(
    mambatile::take_rows_problem const& problem) const noexcept {
  return mambatile::detail::problem_hash(
      [&](auto const& visit) { mambatile::for_each_field(problem, visit); });
}
