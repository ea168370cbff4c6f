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

/// Two neighbours in one register.
template <class Element>
__device__ std::uint32_t narrow_pair(float first, float second) {
  if constexpr (std::is_same_v<Element, __half>) {
    __half2 const pair = __floats2half2_rn(first, second);
    return *reinterpret_cast<std::uint32_t const*>(&pair);
  } else {
    __nv_bfloat162 const pair = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<std::uint32_t const*>(&pair);
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
    *reinterpret_cast<uint2*>(to) =
        make_uint2(narrow_pair<Element>(value.x, value.y), narrow_pair<Element>(value.z, value.w));
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
    to[i * stride] = narrow_stochastically<Element>(four[i], detail::rounding_word(key, first + i));
  }
}

/// Four neighbours of B or C as they lie in memory, zeros beyond `count`. `vector`: a group of four
/// is aligned, and there or not as a whole.
__device__ inline uint4 load_four_bits(void const* data, dtype type, std::int64_t at, int count,
                                       bool vector) {
  uint4 bits = make_uint4(0, 0, 0, 0);
  if (!vector) {
    if (count > 0) bits.x = load_bits(data, type, at);
    if (count > 1) bits.y = load_bits(data, type, at + 1);
    if (count > 2) bits.z = load_bits(data, type, at + 2);
    if (count > 3) bits.w = load_bits(data, type, at + 3);
  } else if (count > 0) {
    if (type == dtype::f32) {
      bits = *reinterpret_cast<uint4 const*>(static_cast<std::uint32_t const*>(data) + at);
    } else {
      uint2 const pairs =
          *reinterpret_cast<uint2 const*>(static_cast<std::uint16_t const*>(data) + at);
      bits.x = pairs.x;
      bits.y = pairs.y;
    }
  }
  return bits;
}

__device__ inline float4 values_of(uint4 bits, dtype type, bool vector) {
  if (type == dtype::f32) {
    return make_float4(__uint_as_float(bits.x), __uint_as_float(bits.y), __uint_as_float(bits.z),
                       __uint_as_float(bits.w));
  }
  if (vector) {
    bits = make_uint4(bits.x & 0xffffU, bits.x >> 16U, bits.y & 0xffffU, bits.y >> 16U);
  }
  return make_float4(value_of(bits.x, type), value_of(bits.y, type), value_of(bits.z, type),
                     value_of(bits.w, type));
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
