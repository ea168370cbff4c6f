#pragma once

#include <memory>

#include <mambatile/scan.hpp>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

[[nodiscard]] std::shared_ptr<plan_implementation<scan_problem> const> make_scan_plan(
    scan_problem const& problem);

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
