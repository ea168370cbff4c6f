#pragma once

#include <bit>
#include <cstdint>

#include <Kokkos_SIMD.hpp>

// The one place that says which SIMD type the backend computes with: Kokkos' widest for f32
// (its native_simd<float> is half as wide).

namespace mambatile {
inline namespace v0 {
namespace kokkos {

#if defined(KOKKOS_ARCH_AVX512XEON)
using pack_abi = Kokkos::Experimental::simd_abi::avx512_fixed_size<16>;
inline constexpr char const* pack_abi_name = "AVX-512";
inline constexpr int vector_registers = 32;
#elif defined(KOKKOS_ARCH_AVX2)
using pack_abi = Kokkos::Experimental::simd_abi::avx2_fixed_size<8>;
inline constexpr char const* pack_abi_name = "AVX2";
inline constexpr int vector_registers = 16;
#elif defined(KOKKOS_ARCH_ARM_NEON)
using pack_abi = Kokkos::Experimental::simd_abi::neon_fixed_size<4>;
inline constexpr char const* pack_abi_name = "NEON";
inline constexpr int vector_registers = 32;
#else
using pack_abi = Kokkos::Experimental::simd_abi::scalar;
inline constexpr char const* pack_abi_name = "scalar";
inline constexpr int vector_registers = 16;
#endif

/// f32 values that one instruction works on.
using pack = Kokkos::Experimental::simd<float, pack_abi>;
using pack_mask = typename pack::mask_type;
/// As many i32 values.
using int_pack = Kokkos::Experimental::simd<std::int32_t, pack_abi>;

inline constexpr int pack_width = static_cast<int>(pack::size());

/// 0, 1, 2, ... as f32.
[[nodiscard]] inline pack lane_numbers() noexcept {
  return pack([](std::size_t lane) { return static_cast<float>(lane); });
}

/// The lanes before `count`.
[[nodiscard]] inline pack_mask first_lanes(int count) noexcept {
  return lane_numbers() < pack(static_cast<float>(count));
}

[[nodiscard]] inline pack select(pack_mask const& mask, pack const& yes, pack const& no) noexcept {
  return Kokkos::Experimental::condition(mask, yes, no);
}

[[nodiscard]] inline pack fma(pack const& a, pack const& b, pack const& c) noexcept {
  return Kokkos::fma(a, b, c);
}
/// What they give for NaN differs between instruction sets: select afterwards where it matters.
[[nodiscard]] inline pack larger(pack const& a, pack const& b) noexcept {
  return Kokkos::max(a, b);
}
[[nodiscard]] inline pack smaller(pack const& a, pack const& b) noexcept {
  return Kokkos::min(a, b);
}

[[nodiscard]] inline int_pack bits_of(pack const& value) noexcept {
  return std::bit_cast<int_pack>(value);
}
[[nodiscard]] inline pack from_bits(int_pack const& bits) noexcept {
  return std::bit_cast<pack>(bits);
}

/// Sum of all lanes, in a fixed order.
[[nodiscard]] inline float sum_of_lanes(pack const& value) noexcept {
  alignas(sizeof(pack)) float lanes[pack_width];
  value.copy_to(lanes, Kokkos::Experimental::simd_flag_aligned);
  for (int half = pack_width / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
