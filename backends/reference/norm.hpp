#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <mambatile/norm.hpp>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

/// Numbers of scratch that gated_rms_norm_row needs.
[[nodiscard]] std::size_t gated_rms_norm_scratch(gated_rms_norm_problem const& problem) noexcept;

/// The channels of one row, unrounded. They lie at the start of the scratch.
[[nodiscard]] double const* gated_rms_norm_row(gated_rms_norm_problem const& problem,
                                               gated_rms_norm_arguments const& arguments,
                                               std::int64_t row, double* scratch);

[[nodiscard]] std::shared_ptr<plan_implementation<gated_rms_norm_problem> const>
make_gated_rms_norm_plan(gated_rms_norm_problem const& problem);

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
