#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <mambatile/export.hpp>
#include <mambatile/tensor_view.hpp>

/// @file
/// What all operators share: plans, workspaces, queues, support.
///
/// An operator is a problem (sizes, types and options: everything a plan depends on) and its
/// arguments (the tensors of one call). A backend turns a problem into a plan once; the plan then
/// executes any number of calls within the problem's capacities.

namespace mambatile {
inline namespace v0 {

class backend;

/// An answer with its reason.
struct support {
  bool ok = false;
  std::string reason;  ///< why not; empty when ok

  [[nodiscard]] explicit operator bool() const noexcept { return ok; }
};

/// Where and in what order work runs.
struct queue {
  device where = {};
  /// CUDA: a cudaStream_t, null for the default stream. Host: unused; execute returns when the work
  /// is done.
  void* native = nullptr;
  /// Host: threads this call may use, at most the plan's; 0 = as many as the plan has.
  int threads = 0;
};

/// Alignment that every workspace must have, in bytes.
inline constexpr std::size_t workspace_alignment = 256;

/// Scratch memory for one call at a time, owned by the caller, on the plan's device, aligned to
/// workspace_alignment. Its contents need not be initialised or kept.
struct workspace_view {
  void* data = nullptr;
  std::size_t bytes = 0;
  device where = {};
};

/// What the device found while it worked: index arrays that live on a device can only be checked
/// there.
struct execution_status {
  bool ok = true;
  std::string message;  ///< the rule that was broken; empty when ok

  [[nodiscard]] explicit operator bool() const noexcept { return ok; }
};

namespace detail {
template <class Problem>
class plan_implementation;
}  // namespace detail

/// A planned operator: an immutable value, cheap to copy, usable from several threads at once as
/// long as each concurrent call has a workspace and outputs of its own.
template <class Problem>
class operator_plan {
 public:
  using problem_type = Problem;
  using arguments_type = typename Problem::arguments_type;

  /// Used by backends; get plans from backend::plan.
  operator_plan(backend const& served_by, device where, Problem const& problem,
                std::shared_ptr<detail::plan_implementation<Problem> const> implementation);

  /// The problem this plan was made for.
  [[nodiscard]] Problem const& problem() const noexcept;
  /// The backend that serves it.
  [[nodiscard]] backend const& served_by() const noexcept;
  /// The device it runs on.
  [[nodiscard]] device where() const noexcept;
  /// Bytes of workspace that execute needs; 0 means none.
  [[nodiscard]] std::size_t workspace_bytes() const noexcept;
  /// Host: most threads that execute uses, and so the largest queue::threads; 0 on a device.
  [[nodiscard]] int threads() const noexcept;
  /// Backend, algorithm and its main parameters in one line.
  [[nodiscard]] std::string_view description() const noexcept;

  /// Checks the arguments, then does the work on the queue. Allocates nothing that grows with the
  /// problem and does not synchronise.
  /// @throws invalid_argument, unsupported before anything is written.
  /// @throws backend_failure when the device refuses the work.
  void execute(arguments_type const& arguments, workspace_view workspace, queue on) const;
  /// On the plan's device, with its default queue.
  void execute(arguments_type const& arguments, workspace_view workspace) const;
  /// For plans that need no workspace.
  void execute(arguments_type const& arguments) const;

  /// Waits for the queue and reports what the last execute with this workspace found. Always ok on
  /// the host, where index arrays are checked before the work starts.
  [[nodiscard]] execution_status status(workspace_view workspace, queue on) const;

  /// Checks a call without running it: what execute checks, and the entries of index arrays
  /// (cu_seqlens, seq_idx, slots, ..) wherever they are. Those on a device are copied to the host,
  /// for which the call waits for the queue; what this finds is what execute could only report
  /// through status. Writes nothing; allocates on the host.
  /// @throws invalid_argument, unsupported, with the message that execute has for host tensors.
  void check_indices(arguments_type const& arguments, queue on) const;
  /// On the plan's device, with its default queue.
  void check_indices(arguments_type const& arguments) const;

 private:
  backend const* served_by_;
  device where_;
  std::shared_ptr<detail::plan_implementation<Problem> const> implementation_;
  Problem problem_;
};

}  // namespace v0
}  // namespace mambatile
