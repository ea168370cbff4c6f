#pragma once

#include <cstddef>
#include <memory>

#include <mambatile/backend.hpp>
#include <mambatile/conv1d.hpp>
#include <mambatile/export.hpp>
#include <mambatile/norm.hpp>
#include <mambatile/scan.hpp>
#include <mambatile/state_update.hpp>

/// @file
/// Short calls: operators without plans and workspaces in sight.

namespace mambatile {
inline namespace v0 {

/// Keeps the plans and the workspace of recent calls. Owned by the caller; one per thread and per
/// queue. A call may plan and may allocate, so short calls are not for CUDA graph capture: plan
/// there.
class MAMBATILE_EXPORT context {
 public:
  /// On the default backend, device 0.
  context();
  explicit context(backend const& served_by);
  context(backend const& served_by, device where);
  context(context&&) noexcept;
  context& operator=(context&&) noexcept;
  ~context();

  [[nodiscard]] backend const& served_by() const noexcept;
  [[nodiscard]] device where() const noexcept;
  /// The kept or newly made plan for a problem; valid until the context makes another.
  template <class Problem>
  [[nodiscard]] operator_plan<Problem> const& plan(Problem const& problem);
  /// The kept workspace, grown to at least this size.
  [[nodiscard]] workspace_view workspace(std::size_t bytes, queue on);
  /// Forgets all plans and frees the workspace.
  void clear() noexcept;

 private:
  struct storage;
  std::unique_ptr<storage> storage_;
};

/// chunk_scan in one call, on the context's device.
MAMBATILE_EXPORT void chunk_scan(context& with, scan_arguments const& arguments,
                                 scan_options const& options, queue on);
MAMBATILE_EXPORT void chunk_scan(context& with, scan_arguments const& arguments,
                                 scan_options const& options = {});

/// state_update in one call, on the context's device.
MAMBATILE_EXPORT void state_update(context& with, state_update_arguments const& arguments,
                                   state_update_options const& options, queue on);
MAMBATILE_EXPORT void state_update(context& with, state_update_arguments const& arguments,
                                   state_update_options const& options = {});

/// causal_conv1d in one call, on the context's device.
MAMBATILE_EXPORT void causal_conv1d(context& with, conv1d_arguments const& arguments,
                                    conv1d_options const& options, queue on);
MAMBATILE_EXPORT void causal_conv1d(context& with, conv1d_arguments const& arguments,
                                    conv1d_options const& options = {});

/// causal_conv1d_update in one call, on the context's device.
MAMBATILE_EXPORT void causal_conv1d_update(context& with, conv1d_update_arguments const& arguments,
                                           conv1d_update_options const& options, queue on);
MAMBATILE_EXPORT void causal_conv1d_update(context& with, conv1d_update_arguments const& arguments,
                                           conv1d_update_options const& options = {});

/// gated_rms_norm in one call, on the context's device.
MAMBATILE_EXPORT void gated_rms_norm(context& with, gated_rms_norm_arguments const& arguments,
                                     gated_rms_norm_options const& options, queue on);
MAMBATILE_EXPORT void gated_rms_norm(context& with, gated_rms_norm_arguments const& arguments,
                                     gated_rms_norm_options const& options = {});

}  // namespace v0
}  // namespace mambatile
