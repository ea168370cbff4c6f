#include "gated_rms_norm.hpp"

#include "recurrence_device.cuh"

// Grid: a block per row and group of channels, groups fastest. A thread has every blockDim-th
// channel; the first few stay in its registers between the mean and the output, the others are read
// again. Any strides of the outer axes, any alignment. Squares are summed in double: those of an
// f32 leave its range.

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

constexpr int kept_channels = 8;  // per thread
constexpr int most_threads = 1024;
constexpr unsigned all_lanes = ~0U;

__device__ std::int64_t offset_of(row_tensor const& view, std::int64_t row) {
  std::int64_t offset = 0;
  for (int axis = view.axes - 1; axis > 0; --axis) {
    offset += row % view.extents[axis] * view.strides[axis];
    row /= view.extents[axis];
  }
  return offset + row * view.strides[0];
}

__device__ float silu(float z) { return z / (1.0F + expf(-z)); }

/// Sum over the block; every thread gets it, the same bits each time.
__device__ double block_sum(double value) {
  __shared__ double sums[most_threads / 32];
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(all_lanes, value, distance);
  }
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  double sum = 0.0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += sums[w];
  return sum;
}

__global__ void __launch_bounds__(most_threads)
    gated_rms_norm_kernel(__grid_constant__ norm_call const call) {
  auto const groups = static_cast<unsigned>(call.channels / call.group_size);
  std::int64_t const row = blockIdx.x / groups;
  int const first = static_cast<int>(blockIdx.x % groups) * call.group_size;
  std::int64_t const x_at = offset_of(call.x, row) + first;
  std::int64_t const z_at = call.z.data == nullptr ? 0 : offset_of(call.z, row) + first;
  std::int64_t const out_at = offset_of(call.out, row) + first;
  int const step = static_cast<int>(blockDim.x);
  bool const gated = call.z.data != nullptr;

  auto const normed = [&](int c) -> double {  // what the mean is taken of
    double const x = load_element(call.x.data, call.io, x_at + c);
    if (!gated || call.norm_before_gate) return x;
    return x * silu(load_element(call.z.data, call.io, z_at + c));
  };
  double kept[kept_channels];
  double squares = 0.0;
#pragma unroll
  for (int k = 0; k < kept_channels; ++k) {
    int const c = static_cast<int>(threadIdx.x) + k * step;
    kept[k] = c < call.group_size ? normed(c) : 0.0;
    squares += kept[k] * kept[k];
  }
  for (int c = static_cast<int>(threadIdx.x) + kept_channels * step; c < call.group_size;
       c += step) {
    double const value = normed(c);
    squares += value * value;
  }
  double const mean = block_sum(squares) / call.group_size + call.eps;
  double const scale = mean == 0.0 ? 0.0 : 1.0 / sqrt(mean);

  auto const finish = [&](int c, double value) {
    float result =
        static_cast<float>(value * scale) *
        load_element(call.weight.data, call.weight.type, (first + c) * call.weight.stride0);
    if (call.bias.data != nullptr) {
      result += load_element(call.bias.data, call.bias.type, (first + c) * call.bias.stride0);
    }
    if (gated && call.norm_before_gate) {
      result *= silu(load_element(call.z.data, call.io, z_at + c));
    }
    store_element(call.out.data, call.io, out_at + c, result);
  };
#pragma unroll
  for (int k = 0; k < kept_channels; ++k) {
    int const c = static_cast<int>(threadIdx.x) + k * step;
    if (c < call.group_size) finish(c, kept[k]);
  }
  for (int c = static_cast<int>(threadIdx.x) + kept_channels * step; c < call.group_size;
       c += step) {
    finish(c, normed(c));
  }
}

}  // namespace

cudaError_t launch_gated_rms_norm(norm_call const& call, cudaStream_t stream) {
  if (call.rows == 0 || call.channels == 0) return cudaSuccess;
  // As many threads as keep the whole group in registers, in whole warps.
  int const wanted = (call.group_size + kept_channels - 1) / kept_channels;
  int const threads = wanted >= most_threads ? most_threads : (wanted + 31) / 32 * 32;
  std::int64_t const blocks = call.rows * (call.channels / call.group_size);
  gated_rms_norm_kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0,
                          stream>>>(call);
  return cudaGetLastError();
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
