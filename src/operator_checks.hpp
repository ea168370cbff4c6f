#pragma once

#include <cstddef>

#include <mambatile/conv1d.hpp>
#include <mambatile/matmul.hpp>
#include <mambatile/norm.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/scan.hpp>
#include <mambatile/state_update.hpp>
#include <mambatile/take_rows.hpp>

// What every operator brings to the API's edge: a few functions per problem type, found by
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
void validate(matmul_problem const& problem);
void validate(take_rows_problem const& problem);

/// What no backend serves, with the reason; the answer to a valid problem before a backend is
/// asked.
template <class Problem>
[[nodiscard]] support general_support(Problem const& /*problem*/) {
  return {true, {}};
}
[[nodiscard]] support general_support(state_update_problem const& problem);

/// Host memory that check_indices needs. On the host it is the front of the plan's workspace; on a
/// device execute checks no entries, and there it is 0.
template <class Problem>
[[nodiscard]] std::size_t check_bytes(Problem const& /*problem*/, device /*where*/) noexcept {
  return 0;
}
[[nodiscard]] std::size_t check_bytes(scan_problem const& problem, device where);
[[nodiscard]] std::size_t check_bytes(state_update_problem const& problem, device where);
[[nodiscard]] std::size_t check_bytes(conv1d_problem const& problem, device where);
[[nodiscard]] std::size_t check_bytes(conv1d_update_problem const& problem, device where);

/// Throws invalid_argument or unsupported where the arguments do not fit the problem, index arrays'
/// entries apart. Reads no tensor's data.
void check(scan_problem const& problem, scan_arguments const& arguments, device where);
void check(state_update_problem const& problem, state_update_arguments const& arguments,
           device where);
void check(conv1d_problem const& problem, conv1d_arguments const& arguments, device where);
void check(conv1d_update_problem const& problem, conv1d_update_arguments const& arguments,
           device where);
void check(gated_rms_norm_problem const& problem, gated_rms_norm_arguments const& arguments,
           device where);
void check(matmul_problem const& problem, matmul_arguments const& arguments, device where);
void check(take_rows_problem const& problem, take_rows_arguments const& arguments, device where);

/// Visits the index arrays among the arguments of a call: visit(const_tensor_view&).
template <class Arguments, class Visitor>
void for_each_index_array(Arguments& /*arguments*/, Visitor const& /*visit*/) {}
template <class Visitor>
void for_each_index_array(scan_arguments& arguments, Visitor const& visit) {
  for (auto* view : {&arguments.cu_seqlens, &arguments.seq_idx, &arguments.state_source,
                     &arguments.state_target}) {
    visit(*view);
  }
}
template <class Visitor>
void for_each_index_array(state_update_arguments& arguments, Visitor const& visit) {
  for (auto* view : {&arguments.state_source, &arguments.state_target, &arguments.num_accepted}) {
    visit(*view);
  }
}
template <class Visitor>
void for_each_index_array(conv1d_arguments& arguments, Visitor const& visit) {
  for (auto* view : {&arguments.cu_seqlens, &arguments.seq_idx, &arguments.state_source,
                     &arguments.state_target, &arguments.cache_seqlens}) {
    visit(*view);
  }
}
template <class Visitor>
void for_each_index_array(conv1d_update_arguments& arguments, Visitor const& visit) {
  for (auto* view :
       {&arguments.cu_seqlens, &arguments.seq_idx, &arguments.state_source, &arguments.state_target,
        &arguments.cache_seqlens, &arguments.num_accepted, &arguments.num_previous}) {
    visit(*view);
  }
}
template <class Visitor>
void for_each_index_array(take_rows_arguments& arguments, Visitor const& visit) {
  visit(arguments.index);
}

/// Throws invalid_argument where the entries of index arrays break a rule, in a call that has
/// passed check. The index arrays are on the host, whatever they say; no other tensor is read.
/// `scratch` is host memory of check_bytes for the host.
template <class Problem, class Arguments>
void check_indices(Problem const& /*problem*/, Arguments const& /*arguments*/, void* /*scratch*/) {}
void check_indices(scan_problem const& problem, scan_arguments const& arguments, void* scratch);
void check_indices(state_update_problem const& problem, state_update_arguments const& arguments,
                   void* scratch);
void check_indices(conv1d_problem const& problem, conv1d_arguments const& arguments, void* scratch);
void check_indices(conv1d_update_problem const& problem, conv1d_update_arguments const& arguments,
                   void* scratch);
void check_indices(take_rows_problem const& problem, take_rows_arguments const& arguments,
                   void* scratch);

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
