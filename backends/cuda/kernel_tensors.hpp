#pragma once

#include <cstdint>

#include <mambatile/dtype.hpp>

// Tensors as kernels take them: plain data, readable by the host compiler and by nvcc.

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// A tensor with axes (batch, token, head or group, inner); inner stride 1, strides in elements.
struct token_tensor {
  void* data = nullptr;
  std::int64_t batch = 0;
  std::int64_t token = 0;
  std::int64_t head = 0;
};

/// A tensor with axes (row, head, p, n), strides in elements.
struct state_tensor {
  void* data = nullptr;
  dtype type = dtype::f32;
  std::int64_t row = 0;
  std::int64_t head = 0;
  std::int64_t p = 0;
  std::int64_t n = 0;
};

/// A vector or matrix of parameters or indices.
struct small_tensor {
  void const* data = nullptr;
  dtype type = dtype::f32;
  std::int64_t stride0 = 0;
  std::int64_t stride1 = 0;
};

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
