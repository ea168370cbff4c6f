#pragma once

#include <array>

#include "simd.hpp"
#include "vector_math.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// delta from dt + dt_bias, the same for prefill and decode. NaN stays NaN.
[[nodiscard]] inline pack step_size(pack step, bool dt_softplus,
                                    std::array<float, 2> const& dt_limit) noexcept {
  if (dt_softplus) step = softplus(step);
  step = select(step < pack(dt_limit[0]), pack(dt_limit[0]), step);
  return select(step > pack(dt_limit[1]), pack(dt_limit[1]), step);
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
