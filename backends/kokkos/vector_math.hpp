#pragma once

#include <limits>

#include "simd.hpp"

// exp and what is made of it, a pack at a time. Bounds are against the exact value of the f32
// argument; tests/unit/vector_math.cpp holds them. NaN gives NaN.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// e^x within 1.5 ulp. Results below the smallest normal f32 (x < -87.33) become 0, above the
/// largest infinity.
[[nodiscard]] inline pack exp(pack const& x) noexcept {
  constexpr float lowest = -87.3365448F;
  constexpr float highest = 88.7228394F;
  constexpr float log2_e = 1.44269504F;
  constexpr float ln2_high = 0.693147182F;
  constexpr float ln2_low = -1.90465430e-9F;
  // Adding it leaves the nearest integer in the low bits of the sum.
  constexpr float integer_shift = 12582912.0F;

  pack const bounded = larger(pack(lowest), smaller(pack(highest), x));
  pack const shifted = fma(bounded, pack(log2_e), pack(integer_shift));
  pack const n = shifted - pack(integer_shift);
  pack r = fma(n, pack(-ln2_high), bounded);
  r = fma(n, pack(-ln2_low), r);
  // e^r on |r| <= ln(2) / 2.
  pack p(1.9875691500e-4F);
  p = fma(p, r, pack(1.3981999507e-3F));
  p = fma(p, r, pack(8.3334519073e-3F));
  p = fma(p, r, pack(4.1665795894e-2F));
  p = fma(p, r, pack(1.6666665459e-1F));
  p = fma(p, r, pack(5.0000001201e-1F));
  p = fma(p, r * r, r) + pack(1.0F);
  // Times 2^n: n into the exponent.
  pack const scaled = from_bits(bits_of(p) + (bits_of(shifted) << 23));
  pack const low_done = select(x < pack(lowest), pack(0.0F), scaled);
  pack const high_done =
      select(x > pack(highest), pack(std::numeric_limits<float>::infinity()), low_done);
  return select(x == x, high_done, x);
}

/// log(1 + u) for 0 <= u <= 1 within 2 ulp.
[[nodiscard]] inline pack log1p_unit(pack const& u) noexcept {
  // 2 artanh(s), s = u / (2 + u), as an odd polynomial in s <= 1/3.
  pack const s = u / (u + pack(2.0F));
  pack const w = s * s;
  pack p(1.1612164611e-1F);
  p = fma(p, w, pack(1.0853287900e-1F));
  p = fma(p, w, pack(1.4296178997e-1F));
  p = fma(p, w, pack(1.9999853165e-1F));
  p = fma(p, w, pack(3.3333333660e-1F));
  pack const twice = s + s;
  return fma(twice * w, p, twice);
}

/// log(1 + e^r) within 4 ulp for r >= -87.33, below that 0. Keeps its digits for very negative r
/// and equals r for r > 20.
[[nodiscard]] inline pack softplus(pack const& r) noexcept {
  pack const magnitude = larger(r, -r);
  pack const correction = log1p_unit(exp(-magnitude));
  pack const positive = select(r > pack(0.0F), r, pack(0.0F)) + correction;
  return select(r == r, positive, r);
}

/// z / (1 + e^-z) within 4 ulp.
[[nodiscard]] inline pack silu(pack const& z) noexcept { return z / (pack(1.0F) + exp(-z)); }

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
