#include "skip.hpp"

#include "recurrence_device.cuh"

// Grid: elements of out, 256 threads, a thread per element; channels fastest.

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

constexpr int block_threads = 256;

__host__ __device__ std::int64_t element_count(scan_sizes const& size) {
  return static_cast<std::int64_t>(size.packed ? 1 : size.sequences) * size.seqlen * size.heads *
         size.headdim;
}

__global__ void __launch_bounds__(block_threads) skip_kernel(scan_call call, dtype io) {
  scan_sizes const& size = call.size;
  std::int64_t const index = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (index >= element_count(size)) return;
  std::int64_t rest = index / size.headdim;
  std::int64_t const p = index - rest * size.headdim;
  std::int64_t const head = rest % size.heads;
  rest /= size.heads;
  std::int64_t const token = rest % size.seqlen;
  std::int64_t const row = rest / size.seqlen;
  if (size.packed && token >= call.cu_seqlens[size.sequences * call.cu_stride]) return;
  float result = 0.0F;
  bool const owned =
      call.seq_idx.data == nullptr ||
      static_cast<int const*>(
          call.seq_idx.data)[row * call.seq_idx.stride0 + token * call.seq_idx.stride1] >= 0;
  if (owned && call.D.data != nullptr) {
    float const D =
        load_element(call.D.data, call.D.type,
                     head * call.D.stride0 + (call.D_per_channel ? p * call.D.stride1 : 0));
    result = D * load_element(call.x.data, io,
                              row * call.x.batch + token * call.x.token + head * call.x.head + p);
  }
  if (owned && call.z.data != nullptr) {
    float const z = load_element(
        call.z.data, io, row * call.z.batch + token * call.z.token + head * call.z.head + p);
    result *= z / (1.0F + expf(-z));
  }
  store_element(call.out.data, io,
                row * call.out.batch + token * call.out.token + head * call.out.head + p, result);
}

}  // namespace

cudaError_t launch_skip(scan_call const& call, dtype io, cudaStream_t stream) {
  std::int64_t const blocks = (element_count(call.size) + block_threads - 1) / block_threads;
  if (blocks == 0) return cudaSuccess;
  skip_kernel<<<static_cast<unsigned>(blocks), block_threads, 0, stream>>>(call, io);
  return cudaGetLastError();
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
