#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "steps.hpp"

// One token of one head, in f64: the step that chunk_scan and state_update repeat.

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

/// The inputs of one token and head. Vectors run over headdim (x, D, z) or dstate (B, C).
struct recurrence_inputs {
  double delta = 0.0;
  double A = 0.0;
  double const* x = nullptr;
  double const* B = nullptr;
  double const* C = nullptr;
  double const* D = nullptr;  ///< null = none
  double const* z = nullptr;  ///< null = none
};

/// Moves the state, held as (dstate, headdim), by one token; out gets the token's headdim outputs.
inline void recurrence_step(recurrence_inputs const& in, std::int64_t headdim, std::int64_t dstate,
                            double* state, double* out) {
  double const decay = std::exp(in.delta * in.A);
  std::fill_n(out, headdim, 0.0);
  for (std::int64_t n = 0; n < dstate; ++n) {
    double* const column = state + n * headdim;
    double const input = in.delta * in.B[n];
    for (std::int64_t p = 0; p < headdim; ++p) {
      column[p] = decay * column[p] + input * in.x[p];
      out[p] += in.C[n] * column[p];
    }
  }
  if (in.D != nullptr) {
    for (std::int64_t p = 0; p < headdim; ++p) out[p] += in.D[p] * in.x[p];
  }
  if (in.z != nullptr) {
    for (std::int64_t p = 0; p < headdim; ++p) out[p] *= silu(in.z[p]);
  }
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
