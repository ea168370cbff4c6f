#pragma once

#include <memory>

#include <mambatile/conv1d.hpp>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

[[nodiscard]] std::shared_ptr<plan_implementation<conv1d_problem> const> make_conv1d_plan(
    conv1d_problem const& problem);
[[nodiscard]] std::shared_ptr<plan_implementation<conv1d_update_problem> const>
make_conv1d_update_plan(conv1d_update_problem const& problem);

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
