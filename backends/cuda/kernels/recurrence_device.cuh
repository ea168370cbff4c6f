#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include <mambatile/dtype.hpp>

// What the SIMT kernels of the scan and of decode share: elements of any type, and the step.

namespace mambatile {
inline namespace v0 {
namespace gpu {

__device__ inline float load_element(void const* data, dtype type, std::int64_t index) {
  switch (type) {
    case dtype::bf16: return __bfloat162float(static_cast<__nv_bfloat16 const*>(data)[index]);
    case dtype::f16: return __half2float(static_cast<__half const*>(data)[index]);
    default: return static_cast<float const*>(data)[index];
  }
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
