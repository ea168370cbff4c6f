#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include <mambatile/dtype.hpp>

// What the SIMT kernels of the scan and of decode share: elements of any type, and the step.

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// An element as it lies in memory. Apart from its conversion, which would wait for it where it is
/// read: every type has a branch of its own, over which a compiler moves nothing.
__device__ inline std::uint32_t load_bits(void const* data, dtype type, std::int64_t index) {
  return type == dtype::f32 ? static_cast<std::uint32_t const*>(data)[index]
                            : static_cast<std::uint16_t const*>(data)[index];
}

__device__ inline float value_of(std::uint32_t bits, dtype type) {
  float const half = __half2float(__ushort_as_half(static_cast<std::uint16_t>(bits)));
  float const other = __uint_as_float(type == dtype::bf16 ? bits << 16U : bits);
  return type == dtype::f16 ? half : other;
}

__device__ inline float load_element(void const* data, dtype type, std::int64_t index) {
  return value_of(load_bits(data, type, index), type);
}

__device__ inline void store_element(void* data, dtype type, std::int64_t index, float value) {
  switch (type) {
    case dtype::bf16: static_cast<__nv_bfloat16*>(data)[index] = __float2bfloat16_rn(value); break;
    case dtype::f16: static_cast<__half*>(data)[index] = __float2half_rn(value); break;
    default: static_cast<float*>(data)[index] = value;
  }
}

/// clamp(softplus(raw)). NaN stays NaN.
__device__ inline float step_size(float raw, bool softplus, float low, float high) {
  float s = raw;
  if (softplus && raw <= 20.0F) s = log1pf(expf(raw));
  if (s < low) s = low;
  if (s > high) s = high;
  return s;
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
