#pragma once

#include <cstdint>
#include <cstring>

#include <mambatile/dtype.hpp>

#include "half_conversion.hpp"
#include "simd.hpp"

// Loads and stores of packs in any element type; computing is always in f32. No alignment is
// assumed.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

[[nodiscard]] inline pack load(float const* from) noexcept {
  pack result;
  result.copy_from(from, Kokkos::Experimental::simd_flag_default);
  return result;
}
[[nodiscard]] inline pack load(bfloat16 const* from) noexcept { return half::widen(from); }
[[nodiscard]] inline pack load(float16 const* from) noexcept { return half::widen(from); }

inline void store(float* to, pack const& value) noexcept {
  value.copy_to(to, Kokkos::Experimental::simd_flag_default);
}
inline void store(bfloat16* to, pack const& value) noexcept { half::narrow(to, value); }
inline void store(float16* to, pack const& value) noexcept { half::narrow(to, value); }

/// The first `count` elements, 0 < count < pack_width; 0 in the other lanes. Touches no memory
/// beyond them.
template <class Element>
[[nodiscard]] inline pack load_first(Element const* from, int count) noexcept {
  alignas(sizeof(pack)) Element lanes[pack_width] = {};
  std::memcpy(lanes, from, static_cast<std::size_t>(count) * sizeof(Element));
  return load(lanes);
}
[[nodiscard]] inline pack load_first(float const* from, int count) noexcept {
  pack result(0.0F);
  Kokkos::Experimental::where(first_lanes(count), result)
      .copy_from(from, Kokkos::Experimental::simd_flag_default);
  return result;
}

/// Stores the first `count` lanes, 0 < count < pack_width, and touches nothing beyond.
template <class Element>
inline void store_first(Element* to, pack const& value, int count) noexcept {
  alignas(sizeof(pack)) Element lanes[pack_width];
  store(lanes, value);
  std::memcpy(to, lanes, static_cast<std::size_t>(count) * sizeof(Element));
}
inline void store_first(float* to, pack const& value, int count) noexcept {
  Kokkos::Experimental::where(first_lanes(count), value)
      .copy_to(to, Kokkos::Experimental::simd_flag_default);
}

/// Calls function(zero-valued pointer of the element type), for code that is compiled once per
/// type: `visit_type(type, [&]<class Element>(Element const*) { ... })`.
template <class Function>
decltype(auto) visit_type(dtype type, Function&& function) {
  switch (type) {
    case dtype::bf16: return function(static_cast<bfloat16 const*>(nullptr));
    case dtype::f16: return function(static_cast<float16 const*>(nullptr));
    default: return function(static_cast<float const*>(nullptr));
  }
}

/// Element `index` of an array whose type is known at run time only; for parameters and dt, which
/// are small.
[[nodiscard]] inline float element_at(void const* data, dtype type, std::int64_t index) noexcept {
  switch (type) {
    case dtype::bf16: return static_cast<float>(static_cast<bfloat16 const*>(data)[index]);
    case dtype::f16: return static_cast<float>(static_cast<float16 const*>(data)[index]);
    default: return static_cast<float const*>(data)[index];
  }
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
