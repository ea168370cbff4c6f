#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <mambatile/backend.hpp>
#include <mambatile/errors.hpp>
#include <mambatile/plan.hpp>

#include "backend_implementation.hpp"
#include "operator_checks.hpp"
#include "workspace_layout.hpp"

// Definitions of the per-operator templates of plan.hpp and backend.hpp. Each operator's source
// file includes this and instantiates them with MAMBATILE_INSTANTIATE_OPERATOR.

namespace mambatile {
inline namespace v0 {
namespace detail {

void check_workspace(std::string_view operator_name, workspace_view workspace, std::size_t needed,
                     device where);
void check_queue(std::string_view operator_name, queue const& on, device where, int plan_threads);

/// Copies of a device's tensors in host memory.
class host_copies {
 public:
  host_copies(backend const& of, queue on) noexcept : backend_(of), on_(on) {}
  /// Makes the view one of a copy, which is there after wait. All of the memory that the view spans
  /// is copied, at once, with the gaps that its strides leave.
  void replace(const_tensor_view& view);
  void wait() const;

 private:
  backend const& backend_;
  queue on_;
  std::vector<std::vector<std::byte>> memory_;
};

}  // namespace detail

template <class Problem>
operator_plan<Problem>::operator_plan(
    backend const& served_by, device where, Problem const& problem,
    std::shared_ptr<detail::plan_implementation<Problem> const> implementation)
    : served_by_(&served_by),
      where_(where),
      implementation_(std::move(implementation)),
      problem_(problem) {}

template <class Problem>
Problem const& operator_plan<Problem>::problem() const noexcept {
  return problem_;
}

template <class Problem>
backend const& operator_plan<Problem>::served_by() const noexcept {
  return *served_by_;
}

template <class Problem>
device operator_plan<Problem>::where() const noexcept {
  return where_;
}

template <class Problem>
std::size_t operator_plan<Problem>::workspace_bytes() const noexcept {
  return detail::round_to_alignment(detail::check_bytes(problem_, where_)) +
         implementation_->workspace_bytes();
}

template <class Problem>
int operator_plan<Problem>::threads() const noexcept {
  return implementation_->threads();
}

template <class Problem>
std::string_view operator_plan<Problem>::description() const noexcept {
  return implementation_->description();
}

template <class Problem>
void operator_plan<Problem>::execute(arguments_type const& arguments, workspace_view workspace,
                                     queue on) const {
  detail::check_queue(Problem::operator_name, on, where_, implementation_->threads());
  detail::check_workspace(Problem::operator_name, workspace, workspace_bytes(), where_);
  auto const scratch_bytes = detail::round_to_alignment(detail::check_bytes(problem_, where_));
  detail::check(problem_, arguments, where_);
  if (where_.kind == device_kind::host) {
    detail::check_indices(problem_, arguments, workspace.data);
  }
  workspace_view const rest{
      workspace.data == nullptr ? nullptr : static_cast<char*>(workspace.data) + scratch_bytes,
      implementation_->workspace_bytes(), workspace.where};
  implementation_->execute(arguments, rest, on);
}

template <class Problem>
void operator_plan<Problem>::execute(arguments_type const& arguments,
                                     workspace_view workspace) const {
  execute(arguments, workspace, queue{.where = where_});
}

template <class Problem>
void operator_plan<Problem>::execute(arguments_type const& arguments) const {
  execute(arguments, workspace_view{.where = where_}, queue{.where = where_});
}

template <class Problem>
execution_status operator_plan<Problem>::status(workspace_view workspace, queue on) const {
  detail::check_queue(Problem::operator_name, on, where_, implementation_->threads());
  detail::check_workspace(Problem::operator_name, workspace, workspace_bytes(), where_);
  auto const scratch_bytes = detail::round_to_alignment(detail::check_bytes(problem_, where_));
  workspace_view const rest{
      workspace.data == nullptr ? nullptr : static_cast<char*>(workspace.data) + scratch_bytes,
      implementation_->workspace_bytes(), workspace.where};
  return implementation_->status(rest, on);
}

template <class Problem>
void operator_plan<Problem>::check_indices(arguments_type const& arguments, queue on) const {
  detail::check_queue(Problem::operator_name, on, where_, implementation_->threads());
  detail::check(problem_, arguments, where_);
  detail::host_copies copies(*served_by_, on);
  auto on_host = arguments;
  if (where_.kind != device_kind::host) {
    detail::for_each_index_array(on_host, [&](const_tensor_view& view) { copies.replace(view); });
    copies.wait();
  }
  std::vector<std::max_align_t> scratch(
      detail::check_bytes(problem_, device{}) / sizeof(std::max_align_t) + 1);
  detail::check_indices(problem_, on_host, scratch.data());
}

template <class Problem>
void operator_plan<Problem>::check_indices(arguments_type const& arguments) const {
  check_indices(arguments, queue{.where = where_});
}

template <class Problem>
support backend::supports(Problem const& problem, device where) const {
  try {
    detail::validate(problem);
  } catch (invalid_argument const& broken) {
    return {false, broken.what()};
  }
  if (auto general = detail::general_support(problem); !general) return general;
  if (where.kind != kind()) {
    return {false, fmt::format("{}: the {} backend does not serve device {}",
                               Problem::operator_name, name(), to_string(where))};
  }
  if (auto available = is_available(); !available) return available;
  if (where.index < 0 || where.index >= device_count()) {
    return {false, fmt::format("{}: the {} backend has {} devices, but device {} was asked for",
                               Problem::operator_name, name(), device_count(), where.index)};
  }
  detail::operator_backend<Problem> const& serves = *implementation_;
  auto answer = serves.supports(problem, where);
  if (!answer) {
    answer.reason =
        fmt::format("{}: {} backend: {}", Problem::operator_name, name(), answer.reason);
  }
  return answer;
}

template <class Problem>
operator_plan<Problem> backend::plan(Problem const& problem, device where) const {
  detail::validate(problem);
  if (auto available = is_available(); !available) throw backend_unavailable(available.reason);
  if (auto answer = supports(problem, where); !answer) throw unsupported(answer.reason);
  detail::operator_backend<Problem> const& serves = *implementation_;
  return operator_plan<Problem>(*this, where, problem, serves.plan(problem, where));
}

}  // namespace v0
}  // namespace mambatile

#define MAMBATILE_INSTANTIATE_OPERATOR(Problem)                                                   \
  template class operator_plan<Problem>;                                                          \
  template MAMBATILE_EXPORT support backend::supports<Problem>(Problem const&, device) const;     \
  template MAMBATILE_EXPORT operator_plan<Problem> backend::plan<Problem>(Problem const&, device) \
      const
