#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include <mambatile/dtype.hpp>

#include "simd.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// A pack of 16-bit numbers to and from f32, in hardware where there is some. The only file with
// instruction-set intrinsics. Rounding is to nearest, ties to even, NaN stays NaN, and subnormal
// numbers are kept: bit for bit what the scalar conversions of dtype.hpp do.

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace half {

// Any instruction set: lane by lane, for the compiler to vectorise.
template <class Element>
[[nodiscard]] inline pack widen_lanes(Element const* from) noexcept {
  alignas(sizeof(pack)) float lanes[pack_width];
  for (int i = 0; i < pack_width; ++i) lanes[i] = static_cast<float>(from[i]);
  pack result;
  result.copy_from(lanes, Kokkos::Experimental::simd_flag_aligned);
  return result;
}
template <class Element>
inline void narrow_lanes(Element* to, pack const& value) noexcept {
  alignas(sizeof(pack)) float lanes[pack_width];
  value.copy_to(lanes, Kokkos::Experimental::simd_flag_aligned);
  for (int i = 0; i < pack_width; ++i) to[i] = Element(lanes[i]);
}

#if defined(KOKKOS_ARCH_AVX512XEON)

[[nodiscard]] inline pack widen(bfloat16 const* from) noexcept {
  __m256i const raw = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from));
  return pack(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16)));
}
inline void narrow(bfloat16* to, pack const& value) noexcept {
#if defined(__AVX512BF16__)
  // The hardware's own conversion takes subnormal numbers for zeros.
  constexpr int subnormal = 0x20;
  if (_mm512_fpclass_ps_mask(static_cast<__m512>(value), subnormal) == 0) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        std::bit_cast<__m256i>(_mm512_cvtneps_pbh(static_cast<__m512>(value))));
    return;
  }
#endif
  __m512i const bits = _mm512_castps_si512(static_cast<__m512>(value));
  __m512i const high = _mm512_srli_epi32(bits, 16);
  __m512i const odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  __m512i const rounded = _mm512_srli_epi32(
      _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  __mmask16 const nan =
      _mm512_cmp_ps_mask(static_cast<__m512>(value), static_cast<__m512>(value), _CMP_UNORD_Q);
  __m512i const result = _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(result));
}
[[nodiscard]] inline pack widen(float16 const* from) noexcept {
  return pack(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(from))));
}
inline void narrow(float16* to, pack const& value) noexcept {
  _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(to),
      _mm512_cvtps_ph(static_cast<__m512>(value), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#elif defined(KOKKOS_ARCH_AVX2)

[[nodiscard]] inline pack widen(bfloat16 const* from) noexcept {
  __m128i const raw = _mm_loadu_si128(reinterpret_cast<__m128i const*>(from));
  return pack(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16)));
}
inline void narrow(bfloat16* to, pack const& value) noexcept {
  __m256 const number = static_cast<__m256>(value);
  __m256i const bits = _mm256_castps_si256(number);
  __m256i const high = _mm256_srli_epi32(bits, 16);
  __m256i const odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  __m256i const rounded = _mm256_srli_epi32(
      _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  __m256i const quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  __m256i const nan = _mm256_castps_si256(_mm256_cmp_ps(number, number, _CMP_UNORD_Q));
  __m256i const words = _mm256_blendv_epi8(rounded, quiet, nan);
  __m256i const halves = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(halves));
}
#if defined(__F16C__)
[[nodiscard]] inline pack widen(float16 const* from) noexcept {
  return pack(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from))));
}
inline void narrow(float16* to, pack const& value) noexcept {
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(to),
      _mm256_cvtps_ph(static_cast<__m256>(value), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#else
[[nodiscard]] inline pack widen(float16 const* from) noexcept { return widen_lanes(from); }
inline void narrow(float16* to, pack const& value) noexcept { narrow_lanes(to, value); }
#endif

#else

[[nodiscard]] inline pack widen(bfloat16 const* from) noexcept { return widen_lanes(from); }
inline void narrow(bfloat16* to, pack const& value) noexcept { narrow_lanes(to, value); }
[[nodiscard]] inline pack widen(float16 const* from) noexcept { return widen_lanes(from); }
inline void narrow(float16* to, pack const& value) noexcept { narrow_lanes(to, value); }

#endif

}  // namespace half
}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
