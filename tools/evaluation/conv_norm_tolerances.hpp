#pragma once

#include <mambatile/dtype.hpp>

#include "evaluation/scan_tolerances.hpp"

// How far the convolution and the gated norm may be from f64, with f32 arithmetic inside and one
// rounding of the output. Half a step of a 16-bit format is at most 2^-8 (bf16) or 2^-11 (f16) of a
// value, and a third of that in the mean; values reach 12 times their root mean square (the gated
// norm's, products of two, 16 times). States of the convolution are exact copies and have no limit.

namespace mambatile::evaluation {

/// Over all of out.
[[nodiscard]] constexpr error_limits limits_of_conv1d(dtype io) noexcept {
  switch (io) {
    case dtype::bf16: return {2.5e-3, 4.7e-2};
    case dtype::f16: return {3e-4, 5.9e-3};
    default: return {2e-7, 2e-6};
  }
}

/// Over all of out.
[[nodiscard]] constexpr error_limits limits_of_gated_rms_norm(dtype io) noexcept {
  switch (io) {
    case dtype::bf16: return {2.5e-3, 6.3e-2};
    case dtype::f16: return {3e-4, 7.8e-3};
    default: return {3e-7, 3e-6};
  }
}

}  // namespace mambatile::evaluation
