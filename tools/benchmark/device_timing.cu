#include "benchmark/device_timing.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace mambatile::benchmark {
namespace {

constexpr std::size_t flush_bytes = std::size_t{256} << 20;  // several times any L2

void check(cudaError_t error, char const* doing) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(doing) + ": " + cudaGetErrorString(error));
}

// What one timing owns on the device.
class recording {
 public:
  recording() {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
    check(cudaEventCreate(&begin), "creating an event");
    check(cudaEventCreate(&end), "creating an event");
    check(cudaMalloc(&flushed, flush_bytes), "allocating what flushes the caches");
  }
  recording(recording const&) = delete;
  recording& operator=(recording const&) = delete;
  ~recording() {
    if (replay != nullptr) static_cast<void>(cudaGraphExecDestroy(replay));
    static_cast<void>(cudaFree(flushed));
    static_cast<void>(cudaEventDestroy(begin));
    static_cast<void>(cudaEventDestroy(end));
    static_cast<void>(cudaStreamDestroy(stream));
  }

  void capture(std::function<void(void*)> const& enqueue) {
    check(cudaDeviceSynchronize(), "waiting for the inputs");
    enqueue(stream);  // kernels are loaded
    check(cudaStreamSynchronize(stream), "warming up");
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing a graph");
    enqueue(stream);
    check(cudaStreamEndCapture(stream, &graph), "capturing a graph");
    check(cudaGraphInstantiate(&replay, graph, 0), "making a graph");
    static_cast<void>(cudaGraphDestroy(graph));
  }

  [[nodiscard]] double one_replay() {
    check(cudaMemsetAsync(flushed, 0, flush_bytes, stream), "flushing the caches");
    check(cudaEventRecord(begin, stream), "recording an event");
    check(cudaGraphLaunch(replay, stream), "replaying a graph");
    check(cudaEventRecord(end, stream), "recording an event");
    check(cudaStreamSynchronize(stream), "waiting for a replay");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "reading the time");
    return ms;
  }

  cudaStream_t stream = nullptr;

 private:
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  cudaGraphExec_t replay = nullptr;
  void* flushed = nullptr;
};

constexpr int copy_threads = 256;
constexpr int copy_steps = 4;

__global__ void __launch_bounds__(copy_threads)
    add_in_place_kernel(float4* data, std::size_t count) {
  std::size_t const first =
      static_cast<std::size_t>(blockIdx.x) * copy_threads * copy_steps + threadIdx.x;
  float4 value[copy_steps];
#pragma unroll
  for (int k = 0; k < copy_steps; ++k) {
    std::size_t const at = first + static_cast<std::size_t>(k) * copy_threads;
    if (at < count) value[k] = data[at];
  }
#pragma unroll
  for (int k = 0; k < copy_steps; ++k) {
    std::size_t const at = first + static_cast<std::size_t>(k) * copy_threads;
    value[k].x += 1.0F;
    if (at < count) data[at] = value[k];
  }
}

}  // namespace

bool can_time_devices() noexcept { return true; }

timing time_on_device(std::function<void(void* stream)> const& enqueue, int rounds) {
  recording on_device;
  on_device.capture(enqueue);
  std::vector<double> times;
  for (int i = 0; i < 2; ++i) static_cast<void>(on_device.one_replay());
  for (int i = 0; i < rounds; ++i) times.push_back(on_device.one_replay());
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2], rounds};
}

double in_place_gbytes_per_s(std::size_t bytes, int rounds) {
  void* data = nullptr;
  check(cudaMalloc(&data, bytes), "allocating what is copied");
  std::size_t const count = bytes / sizeof(float4);
  constexpr std::size_t block = std::size_t{copy_threads} * copy_steps;
  auto const time = time_on_device(
      [&](void* stream) {
        add_in_place_kernel<<<static_cast<unsigned>((count + block - 1) / block), copy_threads, 0,
                              static_cast<cudaStream_t>(stream)>>>(static_cast<float4*>(data),
                                                                   count);
        check(cudaGetLastError(), "launching a copy");
      },
      rounds);
  static_cast<void>(cudaFree(data));
  return 2.0 * static_cast<double>(count * sizeof(float4)) / time.median * 1e-6;
}

}  // namespace mambatile::benchmark
