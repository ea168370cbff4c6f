#pragma once

#include <mambatile/dtype.hpp>

#include "evaluation/scan_tolerances.hpp"

// How far the convolution and the gated norm may be from f64, with f32 arithmetic inside and one
// rounding of the output. States of the convolution are exact copies and have no limit.

namespace mambatile::evaluation {

/// Over all of out. Half a step of bf16 is 2^-9 to 2^-8 of a value, on average 2^-10 of it.
[[nodiscard]] constexpr error_limits limits_of_conv1d(dtype io) noexcept {
  switch (io) {
    case dtype::bf16: return {2.5e-3, 2e-2};
    case dtype::f16: return {3e-4, 3e-3};
    default: return {2e-7, 2e-6};
  }
}

/// Over all of out.
[[nodiscard]] constexpr error_limits limits_of_gated_rms_norm(dtype io) noexcept {
  switch (io) {
    case dtype::bf16: return {2.5e-3, 2e-2};
    case dtype::f16: return {3e-4, 3e-3};
    default: return {3e-7, 3e-6};
  }
}

}  // namespace mambatile::evaluation
