#pragma once

#include <memory>

#include <mambatile/norm.hpp>
#include <mambatile/plan.hpp>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Whether the backend can do it at all.
[[nodiscard]] support supports_gated_rms_norm(gated_rms_norm_problem const& problem);
[[nodiscard]] std::shared_ptr<detail::plan_implementation<gated_rms_norm_problem> const>
make_gated_rms_norm_plan(gated_rms_norm_problem const& problem, device where);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
