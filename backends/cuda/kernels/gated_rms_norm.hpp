#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include <mambatile/dtype.hpp>

#include "../kernel_tensors.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Rows with up to four outer axes, the last fastest; inner stride 1, strides in elements.
struct row_tensor {
  void* data = nullptr;
  int axes = 0;
  std::int64_t extents[4] = {};
  std::int64_t strides[4] = {};
};

/// One call of gated_rms_norm.
struct norm_call {
  std::int64_t rows = 0;
  int channels = 0;
  int group_size = 0;
  dtype io = dtype::f32;
  row_tensor x, z, out;
  small_tensor weight, bias;
  float eps = 0;
  bool norm_before_gate = false;
};

/// rows times groups: at most 2^31 - 1.
cudaError_t launch_gated_rms_norm(norm_call const& call, cudaStream_t stream);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
