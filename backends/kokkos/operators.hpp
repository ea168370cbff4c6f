#pragma once

#include <memory>

#include <mambatile/conv1d.hpp>
#include <mambatile/norm.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/scan.hpp>

#include "backend_implementation.hpp"

// What each operator's files offer to the backend class: its predicate and its plan. Plans are made
// once the runtime has been started.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

[[nodiscard]] support scan_support(scan_problem const& problem);
[[nodiscard]] std::shared_ptr<detail::plan_implementation<scan_problem> const> make_scan_plan(
    scan_problem const& problem);

[[nodiscard]] std::shared_ptr<detail::plan_implementation<conv1d_problem> const> make_conv1d_plan(
    conv1d_problem const& problem);
[[nodiscard]] std::shared_ptr<detail::plan_implementation<conv1d_update_problem> const>
make_conv1d_update_plan(conv1d_update_problem const& problem);

[[nodiscard]] std::shared_ptr<detail::plan_implementation<gated_rms_norm_problem> const>
make_gated_rms_norm_plan(gated_rms_norm_problem const& problem);

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
