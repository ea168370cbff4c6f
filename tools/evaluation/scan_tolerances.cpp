#include "evaluation/scan_tolerances.hpp"

#include <algorithm>

namespace mambatile::evaluation {
namespace {

// Rounding once to a 16-bit type changes no element by more than half a unit in the last place,
// 2^-9 (f16: 2^-12) to 2^-8 (2^-11) of its value, so these bound the relative L2 error too. The
// peak is that times the largest element over the slice's root mean square; 25 is beyond what the
// inputs of the tests reach (about 12, in slices of 100,000 elements).
constexpr double rounding_of(dtype type) {
  switch (type) {
    case dtype::bf16: return 4e-3;
    case dtype::f16: return 5e-4;
    default: return 0;
  }
}
constexpr double largest_over_rms = 25;

constexpr error_limits rounded(error_limits computed, dtype stored) {
  double const step = rounding_of(stored);
  if (step == 0) return computed;
  return {std::max(computed.slice, step), std::max(computed.peak, step * largest_over_rms)};
}

// The oracle: what is left is the rounding of the result, and of the stored expectation, to f32.
constexpr scan_limits reference_limits = {{2e-7, 5e-6}, {2e-7, 5e-6}};

// f32 products over chunks, prefix sums in f64.
constexpr scan_limits cpu_limits = {{2e-6, 1.25e-4}, {4e-6, 2.5e-4}};
constexpr scan_limits cpu_hard_limits = {{2e-5, 5e-4}, {4e-5, 1e-3}};

// f32 products over chunks, prefix sums in f32 restarted at each chunk.
constexpr scan_limits gpu_limits = {{8e-6, 5e-4}, {2e-5, 5e-4}};
constexpr scan_limits gpu_hard_limits = {{7e-5, 2e-3}, {1.5e-4, 2e-3}};
// Operands of every product rounded.
constexpr scan_limits gpu_tf32_limits = {{8e-4, 4e-2}, {8e-4, 4e-2}};
constexpr scan_limits gpu_f16_limits = {{1e-3, 5e-2}, {1e-3, 5e-2}};
// smalldt: the steps delta_t are near f16's smallest normal number.
constexpr scan_limits gpu_f16_smalldt_limits = {{1e-2, 5e-2}, {1e-2, 5e-2}};
constexpr scan_limits gpu_bf16_limits = {{1e-2, 0.4}, {6e-3, 0.4}};

scan_limits computed_limits(scan_numerics const& numerics) noexcept {
  bool const hard = is_hard_regime(numerics.regime);
  if (numerics.backend == "reference") return reference_limits;
  if (numerics.backend != "cuda") return hard ? cpu_hard_limits : cpu_limits;
  switch (numerics.io) {
    case dtype::bf16: return gpu_bf16_limits;
    case dtype::f16: return numerics.regime == "smalldt" ? gpu_f16_smalldt_limits : gpu_f16_limits;
    default: break;
  }
  if (numerics.math == products::tf32) return gpu_tf32_limits;
  return hard ? gpu_hard_limits : gpu_limits;
}

}  // namespace

bool is_hard_regime(std::string_view regime) noexcept {
  return regime == "cliff" || regime == "strongA" || regime == "smalldt" || regime == "bigdecay";
}

scan_limits limits_of_scan(scan_numerics const& numerics) noexcept {
  auto const computed = computed_limits(numerics);
  return {rounded(computed.out, numerics.io), rounded(computed.states, numerics.state)};
}

}  // namespace mambatile::evaluation
