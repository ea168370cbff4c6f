#pragma once

#include <array>
#include <cmath>

// The scalar functions of the recurrence, in f64.

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

[[nodiscard]] inline double softplus(double value) noexcept {
  return value > 20.0 ? value : std::log1p(std::exp(value));
}

[[nodiscard]] inline double silu(double value) noexcept { return value / (1.0 + std::exp(-value)); }

/// delta of one token and head. A NaN stays NaN.
[[nodiscard]] inline double step_size(double dt, double dt_bias, bool dt_softplus,
                                      std::array<float, 2> const& dt_limit) noexcept {
  double step = dt + dt_bias;
  if (dt_softplus) step = softplus(step);
  double const low = static_cast<double>(dt_limit[0]);
  double const high = static_cast<double>(dt_limit[1]);
  if (step < low) return low;
  return step > high ? high : step;
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
