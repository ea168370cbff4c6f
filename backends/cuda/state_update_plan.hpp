#pragma once

#include <memory>

#include <mambatile/plan.hpp>
#include <mambatile/state_update.hpp>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Whether the backend can do it at all.
[[nodiscard]] support supports_state_update(state_update_problem const& problem);
[[nodiscard]] std::shared_ptr<detail::plan_implementation<state_update_problem> const>
make_state_update_plan(state_update_problem const& problem, device where);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
