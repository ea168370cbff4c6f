#pragma once

#include <memory>

#include <mambatile/scan.hpp>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

[[nodiscard]] std::shared_ptr<detail::plan_implementation<scan_problem> const> make_scan_plan(
    scan_problem const& problem, device where);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
