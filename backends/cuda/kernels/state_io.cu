#include "state_io.hpp"

#include "../status_bits.hpp"
#include "recurrence_device.cuh"

// States between the caller's tensors (any type, strides, slots) and the workspace (f32, tiles of
// 64 channels, zero beyond headdim and dstate).

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

constexpr int block_threads = 256;

__device__ float load_state(state_tensor const& from, std::int64_t row, int head, int p, int n) {
  std::int64_t const at = row * from.row + head * from.head + p * from.p + n * from.n;
  return load_element(from.data, from.type, at);
}

__device__ void store_state(state_tensor const& to, std::int64_t row_offset, int head, int p, int n,
                            float value) {
  std::int64_t const at = row_offset + head * to.head + p * to.p + n * to.n;
  store_element(to.data, to.type, at, value);
}

/// Row of a state tensor for a sequence, through a slot table where there is one; -1 = none.
__device__ std::int64_t state_row(small_tensor const& table, int slots, int sequence, int* status) {
  if (table.data == nullptr) return sequence;
  int const slot = static_cast<int const*>(table.data)[sequence * table.stride0];
  if (slot >= slots || slot < -1) {
    atomicOr(status, status_bad_slot);
    return -1;
  }
  return slot;
}

__device__ bool has_good_source(scan_call const& call, int sequence) {
  if (call.state_source.data == nullptr) return true;
  int const slot =
      static_cast<int const*>(call.state_source.data)[sequence * call.state_source.stride0];
  return slot >= -1 && slot < call.source_slots;
}

struct sequence_place {
  bool valid = true;
  int start = 0;
  int length = 0;
  int segments = 1;
  int entry = 0;
  int slot = 0;
};

__device__ sequence_place find_place(scan_call const& call, int sequence) {
  scan_sizes const& size = call.size;
  sequence_place place;
  place.length = size.seqlen;
  int const kept_last = size.keep_last ? 1 : 0;
  int const initial = size.has_initial ? 1 : 0;
  int base = 0;
  if (size.packed) {
    place.start = call.cu_seqlens[sequence * call.cu_stride];
    int const end = call.cu_seqlens[(sequence + 1) * call.cu_stride];
    place.valid = place.start >= 0 && place.start <= end && end <= size.seqlen;
    place.length = end - place.start;
    base = place.start / (size.segment_chunks * chunk_tokens);
    place.entry = (base + kept_last * sequence) * size.splits + initial * sequence;
    place.slot = place.start / chunk_tokens + sequence;
  } else {
    place.entry = sequence * ((size.row_segments - 1 + kept_last) * size.splits + initial);
    place.slot = sequence * size.row_chunks;
  }
  int const chunks = (place.length + chunk_tokens - 1) / chunk_tokens;
  place.segments = max(1, (chunks + size.segment_chunks - 1) / size.segment_chunks);
  return place;
}

/// Position of a thread's element of one state: grid (elements / 256, head tiles, sequences) folded
/// into x.
struct element_place {
  int sequence = 0;
  int head = 0;
  int tile = 0;  ///< head tile
  int p = 0;
  int row = 0;  ///< within the tile
  int n = 0;
};

__device__ element_place find_element(scan_sizes const& size, std::int64_t index) {
  element_place place;
  std::int64_t rest = index;
  place.n = static_cast<int>(rest % size.state_columns);
  rest /= size.state_columns;
  place.row = static_cast<int>(rest % tile_rows);
  rest /= tile_rows;
  int const head_tiles = size.heads * size.row_tiles;
  place.tile = static_cast<int>(rest % head_tiles);
  place.sequence = static_cast<int>(rest / head_tiles);
  place.head = place.tile / size.row_tiles;
  place.p = (place.tile % size.row_tiles) * tile_rows + place.row;
  return place;
}

__device__ std::int64_t entry_offset(scan_sizes const& size, element_place const& place,
                                     std::int64_t entry) {
  std::int64_t const head_tiles = static_cast<std::int64_t>(size.heads) * size.row_tiles;
  return ((entry * head_tiles + place.tile) * tile_rows + place.row) * size.state_columns + place.n;
}

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
}

__host__ __device__ std::int64_t all_elements(scan_sizes const& size) {
  return static_cast<std::int64_t>(size.sequences) * size.heads * size.row_tiles * tile_rows *
         size.state_columns;
}

__global__ void __launch_bounds__(block_threads) gather_initial_kernel(scan_call call) {
  scan_sizes const& size = call.size;
  std::int64_t const index = thread_index();
  if (index >= all_elements(size)) return;
  element_place const at = find_element(size, index);
  sequence_place const place = find_place(call, at.sequence);
  if (!place.valid) return;
  std::int64_t const row =
      state_row(call.state_source, call.source_slots, at.sequence, call.prepared.status);
  bool const inside = row >= 0 && at.p < size.headdim && at.n < size.dstate;
  float const value = inside ? load_state(call.initial_states, row, at.head, at.p, at.n) : 0.0F;
  call.prepared.entries[entry_offset(size, at, place.entry)] = value;
  if (at.row == 0 && at.n == 0) {
    call.prepared.entry_decay[static_cast<std::int64_t>(place.entry) * size.heads + at.head] = 1.0F;
  }
}

__global__ void __launch_bounds__(block_threads) pass_states_kernel(scan_call call) {
  scan_sizes const& size = call.size;
  std::int64_t const index = thread_index();
  if (index >= all_elements(size)) return;
  element_place const at = find_element(size, index);
  sequence_place const place = find_place(call, at.sequence);
  if (!place.valid) return;
  bool const inside = at.p < size.headdim && at.n < size.dstate;
  int const initial = size.has_initial ? 1 : 0;
  int const kept = place.segments - 1 + (size.keep_last ? 1 : 0);
  int const entries = initial + kept * size.splits;
  std::int64_t const snapshot_base =
      size.packed && call.intermediate_chunks > 0
          ? place.start / (static_cast<std::int64_t>(call.intermediate_chunks) * chunk_tokens)
          : 0;
  float state = 0.0F;
  for (int e = 0; e < entries; ++e) {
    std::int64_t const entry = place.entry + e;
    float& stored = call.prepared.entries[entry_offset(size, at, entry)];
    state = state * call.prepared.entry_decay[entry * size.heads + at.head] + stored;
    stored = state;
    // A snapshot after the last split of a segment that ends on a multiple of the interval.
    int const done = e + 1 - initial;
    if (call.intermediate_chunks == 0 || done <= 0 || done % size.splits != 0 || !inside) continue;
    int const chunks = done / size.splits * size.segment_chunks;
    if (chunks % call.intermediate_chunks != 0 || chunks * chunk_tokens > place.length) continue;
    std::int64_t const snapshot = snapshot_base + chunks / call.intermediate_chunks - 1;
    state_tensor const& to = call.intermediate_states;
    std::int64_t const row = size.packed ? 0 : at.sequence * call.intermediate_row;
    store_state(to, row + snapshot * to.row, at.head, at.p, at.n, state);
  }
}

__global__ void __launch_bounds__(block_threads) export_final_kernel(scan_call call) {
  scan_sizes const& size = call.size;
  std::int64_t const index = thread_index();
  if (index >= all_elements(size)) return;
  element_place const at = find_element(size, index);
  if (at.p >= size.headdim || at.n >= size.dstate) return;
  if (!find_place(call, at.sequence).valid) return;
  std::int64_t const row =
      state_row(call.state_target, call.target_slots, at.sequence, call.prepared.status);
  // A sequence whose source is no slot has no state to write.
  if (row < 0 || !has_good_source(call, at.sequence)) return;
  store_state(call.final_states, row * call.final_states.row, at.head, at.p, at.n,
              load_state(call.final_target, at.sequence, at.head, at.p, at.n));
}

__global__ void __launch_bounds__(block_threads) total_decay_kernel(scan_call call) {
  __shared__ double sums[block_threads];
  scan_sizes const& size = call.size;
  int const sequence = static_cast<int>(blockIdx.x) / size.heads;
  int const head = static_cast<int>(blockIdx.x) % size.heads;
  sequence_place const place = find_place(call, sequence);
  if (!place.valid) return;
  float const* const decays =
      call.prepared.chunk_log_decay + static_cast<std::int64_t>(head) * size.slots + place.slot;
  int const chunks = (place.length + chunk_tokens - 1) / chunk_tokens;
  double sum = 0;
  for (int c = static_cast<int>(threadIdx.x); c < chunks; c += block_threads) sum += decays[c];
  sums[threadIdx.x] = sum;
  for (int half = block_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) {
    call.total_decay[sequence * call.total_decay_row + head * call.total_decay_head] =
        static_cast<float>(exp2(sums[0]));
  }
}

template <class Kernel>
cudaError_t launch_elements(Kernel kernel, scan_call const& call, cudaStream_t stream) {
  std::int64_t const blocks = (all_elements(call.size) + block_threads - 1) / block_threads;
  if (blocks == 0) return cudaSuccess;
  kernel<<<static_cast<unsigned>(blocks), block_threads, 0, stream>>>(call);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_gather_initial(scan_call const& call, cudaStream_t stream) {
  return launch_elements(gather_initial_kernel, call, stream);
}

cudaError_t launch_pass_states(scan_call const& call, cudaStream_t stream) {
  return launch_elements(pass_states_kernel, call, stream);
}

cudaError_t launch_export_final(scan_call const& call, cudaStream_t stream) {
  return launch_elements(export_final_kernel, call, stream);
}

cudaError_t launch_total_decay(scan_call const& call, cudaStream_t stream) {
  std::int64_t const blocks = static_cast<std::int64_t>(call.size.sequences) * call.size.heads;
  if (blocks == 0) return cudaSuccess;
  total_decay_kernel<<<static_cast<unsigned>(blocks), block_threads, 0, stream>>>(call);
  return cudaGetLastError();
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
