#pragma once

#include <memory>

#include <mambatile/state_update.hpp>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

[[nodiscard]] std::shared_ptr<plan_implementation<state_update_problem> const>
make_state_update_plan(state_update_problem const& problem);

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
