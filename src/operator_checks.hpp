#pragma once

#include <cstddef>

#include <mambatile/conv1d.hpp>
#include <mambatile/matmul.hpp>
#include <mambatile/norm.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/scan.hpp>
#include <mambatile/state_update.hpp>
#include <mambatile/take_rows.hpp>

// What every operator brings to the API's edge: three functions per problem type, found by
// overload resolution in operator_plan.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// Throws invalid_argument where the problem breaks a rule that holds for every backend.
void validate(scan_problem const& problem);
void validate(state_update_problem const& problem);
void validate(conv1d_problem const& problem);
void validate(conv1d_update_problem const& problem);
void validate(gated_rms_norm_problem const& problem);

/// What no backend serves, with the reason; the answer to a valid problem before a backend is
/// asked.
template <class Problem>
[[nodiscard]] support general_support(Problem const& /*problem*/) {
  return {true, {}};
}
[[nodiscard]] support general_support(state_update_problem const& problem);

/// Host scratch that check needs, taken from the front of the plan's workspace.
[[nodiscard]] std::size_t check_bytes(scan_problem const& problem, device where);
[[nodiscard]] std::size_t check_bytes(state_update_problem const& problem, device where);
[[nodiscard]] std::size_t check_bytes(conv1d_problem const& problem, device where);
[[nodiscard]] std::size_t check_bytes(conv1d_update_problem const& problem, device where);
[[nodiscard]] std::size_t check_bytes(gated_rms_norm_problem const& problem, device where);

/// Throws invalid_argument or unsupported where the arguments do not fit the problem. Reads index
/// arrays when they are on the host; writes nothing but `scratch`.
void check(scan_problem const& problem, scan_arguments const& arguments, device where,
           workspace_view scratch);
void check(state_update_problem const& problem, state_update_arguments const& arguments,
           device where, workspace_view scratch);
void check(conv1d_problem const& problem, conv1d_arguments const& arguments, device where,
           workspace_view scratch);
void check(conv1d_update_problem const& problem, conv1d_update_arguments const& arguments,
           device where, workspace_view scratch);
void check(gated_rms_norm_problem const& problem, gated_rms_norm_arguments const& arguments,
           device where, workspace_view scratch);

void validate(matmul_problem const& problem);
[[nodiscard]] std::size_t check_bytes(matmul_problem const& problem, device where);
void check(matmul_problem const& problem, matmul_arguments const& arguments, device where,
           workspace_view scratch);

void validate(take_rows_problem const& problem);
[[nodiscard]] std::size_t check_bytes(take_rows_problem const& problem, device where);
void check(take_rows_problem const& problem, take_rows_arguments const& arguments, device where,
           workspace_view scratch);

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
