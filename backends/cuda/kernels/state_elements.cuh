#pragma once

#include <cstdint>
#include <type_traits>

#include "recurrence_device.cuh"
#include "stochastic_rounding.hpp"

// Elements of stored states, one or four neighbours at a time.

namespace mambatile {
inline namespace v0 {
namespace gpu {

template <class Element>
__device__ float widen(Element value) {
  if constexpr (std::is_same_v<Element, float>) {
    return value;
  } else if constexpr (std::is_same_v<Element, __half>) {
    return __half2float(value);
  } else {
    return __bfloat162float(value);
  }
}

template <class Element>
__device__ Element narrow(float value) {
  if constexpr (std::is_same_v<Element, float>) {
    return value;
  } else if constexpr (std::is_same_v<Element, __half>) {
    return __float2half_rn(value);
  } else {
    return __float2bfloat16_rn(value);
  }
}

template <class Element>
__device__ Element narrow_stochastically(float value, std::uint32_t word) {
  if constexpr (std::is_same_v<Element, __half>) {
    return __ushort_as_half(detail::round_stochastically<float16>(value, word).bits);
  } else {
    return __ushort_as_bfloat16(detail::round_stochastically<bfloat16>(value, word).bits);
  }
}

/// Aligned to four elements.
template <class Element>
__device__ float4 load_four(Element const* from) {
  if constexpr (std::is_same_v<Element, float>) {
    return *reinterpret_cast<float4 const*>(from);
  } else {
    uint2 const bits = *reinterpret_cast<uint2 const*>(from);
    Element four[4];
    static_assert(sizeof(four) == sizeof(bits));
    *reinterpret_cast<uint2*>(four) = bits;
    return make_float4(widen(four[0]), widen(four[1]), widen(four[2]), widen(four[3]));
  }
}

/// Aligned to four elements.
template <class Element>
__device__ void store_four(Element* to, float4 const& value) {
  if constexpr (std::is_same_v<Element, float>) {
    *reinterpret_cast<float4*>(to) = value;
  } else {
    alignas(8) Element const four[4] = {narrow<Element>(value.x), narrow<Element>(value.y),
                                        narrow<Element>(value.z), narrow<Element>(value.w)};
    *reinterpret_cast<uint2*>(to) = *reinterpret_cast<uint2 const*>(four);
  }
}

/// The first `count` of four elements, zeros for the others.
template <class Element>
__device__ float4 load_some(Element const* from, std::int64_t stride, int count) {
  float four[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) four[i] = i < count ? widen(from[i * stride]) : 0.0F;
  return make_float4(four[0], four[1], four[2], four[3]);
}

template <class Element>
__device__ void store_some(Element* to, std::int64_t stride, int count, float4 const& value) {
  float const four[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < count) to[i * stride] = narrow<Element>(four[i]);
  }
}

/// The first `count` of four elements; `first` is the number of the first in its state.
template <class Element>
__device__ void store_stochastically(Element* to, std::int64_t stride, int count,
                                     float4 const& value, detail::rounding_key key,
                                     std::uint32_t first) {
  float const four[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    if (static_cast<int>(i) >= count) continue;
    to[i * stride] =
        narrow_stochastically<Element>(four[i], detail::rounding_word(key, first + i));
  }
}

/// Four neighbours of B or C, the first `count` of them. `vector`: a group of four is aligned, and
/// there or not as a whole.
__device__ inline float4 load_inputs(void const* data, dtype type, std::int64_t at, int count,
                                     bool vector) {
  auto const load = [&](auto const* from) {
    if (!vector) return load_some(from + at, 1, count);
    return count > 0 ? load_four(from + at) : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  };
  switch (type) {
    case dtype::bf16: return load(static_cast<__nv_bfloat16 const*>(data));
    case dtype::f16: return load(static_cast<__half const*>(data));
    default: return load(static_cast<float const*>(data));
  }
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
