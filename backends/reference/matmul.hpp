#pragma once

#include <memory>

#include <mambatile/matmul.hpp>
#include <mambatile/take_rows.hpp>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

[[nodiscard]] std::shared_ptr<plan_implementation<matmul_problem> const> make_matmul_plan(
    matmul_problem const& problem);

[[nodiscard]] std::shared_ptr<plan_implementation<take_rows_problem> const> make_take_rows_plan(
    take_rows_problem const& problem);

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
