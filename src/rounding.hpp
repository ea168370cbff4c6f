#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// Rounding f64 numbers to any floating-point type, once.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// An f64 number as an f32 whose last bit is set where digits were lost ("round to odd"). Rounding
/// the result to a 16-bit format is then a single rounding of the f64 number.
[[nodiscard]] inline float round_to_odd(double value) noexcept {
  auto const nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1U);
}

template <class Element>
[[nodiscard]] Element round_to(double value) noexcept {
  if constexpr (sizeof(Element) == 2) {
    return Element(round_to_odd(value));
  } else {
    return static_cast<Element>(value);
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
