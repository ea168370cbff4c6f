#include "prepare.hpp"

#include "../status_bits.hpp"
#include "recurrence_device.cuh"

// First stage of chunk_scan: steps, decays within chunks, the skip connection, and where packed
// sequences and runs of seq_idx lie. Everything the tile kernels need about dt.
//
// Grid: (ceil(slots / 4), ceil(heads / 8)), 256 threads: a warp per head, four chunk slots per
// block. Any strides, any dt type.

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

constexpr int block_slots = 4;
constexpr int block_heads = 8;
constexpr int block_tokens = block_slots * chunk_tokens;
constexpr int no_run = -1;

struct chunk_place {
  int sequence = -1;  ///< -1: the slot is unused
  int chunk = 0;
  int first_token = 0;
  int tokens = 0;  ///< of the chunk, 1..64
};

/// Largest sequence whose first slot, at `unit` tokens per slot, is at most `slot`.
__device__ int find_sequence(scan_call const& call, int slot, int unit) {
  int low = 0;
  int high = call.size.sequences;
  while (high - low > 1) {
    int const middle = low + (high - low) / 2;
    if (call.cu_seqlens[middle * call.cu_stride] / unit + middle <= slot) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__device__ chunk_place find_chunk(scan_call const& call, int slot) {
  chunk_place place;
  int start = 0;
  int end = call.size.seqlen;
  int sequence = 0;
  if (slot >= call.size.slots) return place;
  if (call.size.packed) {
    sequence = find_sequence(call, slot, chunk_tokens);
    start = call.cu_seqlens[sequence * call.cu_stride];
    end = call.cu_seqlens[(sequence + 1) * call.cu_stride];
    if (start < 0 || end < start || end > call.size.seqlen) return place;
    place.chunk = slot - start / chunk_tokens - sequence;
  } else {
    sequence = slot / call.size.row_chunks;
    place.chunk = slot - sequence * call.size.row_chunks;
  }
  place.first_token = start + place.chunk * chunk_tokens;
  if (place.chunk < 0 || place.first_token >= end) return place;
  place.tokens = min(chunk_tokens, end - place.first_token);
  place.sequence = sequence;
  return place;
}

/// The id of the last token >= 0 before a token of a row, or -1.
__device__ int carried_id(scan_call const& call, int row, int token, int lane) {
  auto const* ids = static_cast<int const*>(call.seq_idx.data) + row * call.seq_idx.stride0;
  for (int end = token; end > 0; end -= 32) {
    int const t = end - 1 - lane;
    int const id = t >= 0 ? ids[t * call.seq_idx.stride1] : -1;
    unsigned const found = __ballot_sync(~0U, id >= 0);
    if (found != 0) return __shfl_sync(~0U, id, __ffs(static_cast<int>(found)) - 1);
  }
  return -1;
}

struct shared_block {
  float delta[block_heads][block_tokens + 4];
  double sum[block_heads][chunk_tokens];
  chunk_place place[block_slots];
  int run_of_token[block_slots][chunk_tokens];
  int run_end[block_slots][chunk_tokens];  ///< last token of a run
  int runs[block_slots];
  int continues[block_slots];
};

/// One warp: the runs of one chunk. A lane has the tokens 2 lane and 2 lane + 1.
__device__ void find_runs(scan_call const& call, shared_block& block, int which, int lane) {
  chunk_place const place = block.place[which];
  int id[2] = {-1, -1};
  for (int k = 0; k < 2; ++k) {
    int const i = 2 * lane + k;
    if (place.sequence < 0 || i >= place.tokens) continue;
    id[k] = call.seq_idx.data == nullptr
                ? 0
                : static_cast<int const*>(
                      call.seq_idx.data)[place.sequence * call.seq_idx.stride0 +
                                         (place.first_token + i) * call.seq_idx.stride1];
  }
  int latest = id[1] >= 0 ? id[1] : id[0];
  for (int distance = 1; distance < 32; distance *= 2) {
    int const other = __shfl_up_sync(~0U, latest, distance);
    if (lane >= distance && latest < 0) latest = other;
  }
  int before = __shfl_up_sync(~0U, latest, 1);
  if (lane == 0) before = -1;
  bool const change0 = id[0] >= 0 && before >= 0 && id[0] != before;
  int const before1 = id[0] >= 0 ? id[0] : before;
  bool const change1 = id[1] >= 0 && before1 >= 0 && id[1] != before1;
  bool const bad =
      id[0] < -1 || id[1] < -1 || (change0 && id[0] < before) || (change1 && id[1] < before1);
  if (bad) atomicOr(call.prepared.status, status_bad_seq_idx);
  int count = static_cast<int>(change0) + static_cast<int>(change1);
  for (int distance = 1; distance < 32; distance *= 2) {
    int const other = __shfl_up_sync(~0U, count, distance);
    if (lane >= distance) count += other;
  }
  int const run1 = count;
  int const run0 = count - static_cast<int>(change1);
  block.run_of_token[which][2 * lane] = id[0] >= 0 ? run0 : no_run;
  block.run_of_token[which][2 * lane + 1] = id[1] >= 0 ? run1 : no_run;
  block.run_end[which][lane] = block.run_end[which][lane + 32] = -1;
  __syncwarp();
  if (id[0] >= 0) atomicMax(&block.run_end[which][run0], 2 * lane);
  if (id[1] >= 0) atomicMax(&block.run_end[which][run1], 2 * lane + 1);

  int const last_change = __shfl_sync(~0U, count, 31);
  bool const any = __any_sync(~0U, latest >= 0);
  // The first id of the chunk against the one carried into it.
  unsigned const owners = __ballot_sync(~0U, id[0] >= 0 || id[1] >= 0);
  int const first_lane = owners == 0 ? 0 : __ffs(static_cast<int>(owners)) - 1;
  int const first_id = __shfl_sync(~0U, id[0] >= 0 ? id[0] : id[1], first_lane);
  int carried = -1;
  if (any && call.seq_idx.data != nullptr) {
    carried = carried_id(call, place.sequence, place.first_token, lane);
  }
  if (lane == 0) {
    block.runs[which] = any ? last_change + 1 : 0;
    block.continues[which] = any && carried >= 0 && carried != first_id ? 0 : 1;
    if (any && carried > first_id) atomicOr(call.prepared.status, status_bad_seq_idx);
  }
}

/// Suffix sums in f32, so that the late, important differences stay small and accurate. A lane has
/// the tokens 2 lane and 2 lane + 1.
__device__ void plain_decays(float rate, float const (&delta)[2], int lane, float (&remaining)[2],
                             float& total) {
  float sum = delta[0] * rate + delta[1] * rate;
  for (int distance = 1; distance < 32; distance *= 2) {
    float const other = __shfl_down_sync(~0U, sum, distance);
    if (lane + distance < 32) sum += other;
  }
  total = __shfl_sync(~0U, sum, 0);
  float const next = __shfl_down_sync(~0U, sum, 1);
  remaining[1] = lane == 31 ? 0.0F : next;
  remaining[0] = remaining[1] + delta[1] * rate;
}

/// General: prefix sums in double with decays relative to each run's end, and their low parts.
template <bool General>
__global__ void __launch_bounds__(block_heads * 32) prepare_kernel(scan_call call) {
  __shared__ shared_block block;
  int const thread = static_cast<int>(threadIdx.x);
  int const lane = thread & 31;
  int const warp = thread >> 5;
  int const first_slot = static_cast<int>(blockIdx.x) * block_slots;
  int const first_head = static_cast<int>(blockIdx.y) * block_heads;
  scan_sizes const& size = call.size;
  scan_prepared const& to = call.prepared;

  if (size.packed) {
    // Sequences of segment slots; all blocks together have more threads than there are slots.
    int const id = (static_cast<int>(blockIdx.y) * static_cast<int>(gridDim.x) +
                    static_cast<int>(blockIdx.x)) *
                       (block_heads * 32) +
                   thread;
    int const stride = static_cast<int>(gridDim.x * gridDim.y) * (block_heads * 32);
    int const unit = chunk_tokens * size.segment_chunks;
    for (int s = id; s < size.segments; s += stride) {
      int const sequence = find_sequence(call, s, unit);
      int const start = call.cu_seqlens[sequence * call.cu_stride];
      bool const inside = size.sequences > 0 && start >= 0 && s - start / unit - sequence >= 0;
      to.segment_sequence[s] = inside ? sequence : -1;
    }
    for (int s = id; s < size.sequences; s += stride) {
      int const start = call.cu_seqlens[s * call.cu_stride];
      int const end = call.cu_seqlens[(s + 1) * call.cu_stride];
      if (start < 0 || end < start || end > size.seqlen || (s == 0 && start != 0)) {
        atomicOr(to.status, status_bad_cu_seqlens);
      }
    }
  }

  if (thread < block_slots) block.place[thread] = find_chunk(call, first_slot + thread);
  __syncthreads();
  if (General) {
    if (warp < block_slots) find_runs(call, block, warp, lane);
    __syncthreads();
    if (blockIdx.y == 0) {
      int const which = thread / chunk_tokens;
      int const i = thread % chunk_tokens;
      if (block.place[which].sequence >= 0) {
        std::int64_t const slot = first_slot + which;
        to.run_of_token[slot * chunk_tokens + i] = block.run_of_token[which][i];
        if (i == 0) {
          to.chunk_runs[slot] = block.runs[which];
          to.chunk_continues[slot] = block.continues[which];
        }
      }
    }
  }

  for (int k = 0; k < block_tokens / 32; ++k) {
    int const e = k * 256 + thread;
    int const t = e / block_heads;
    int const head = first_head + e % block_heads;
    chunk_place const& place = block.place[t / chunk_tokens];
    int const i = t % chunk_tokens;
    float delta = 0.0F;
    bool used = place.sequence >= 0 && i < place.tokens && head < size.heads;
    if (General && used) used = block.run_of_token[t / chunk_tokens][i] != no_run;
    if (used) {
      std::int64_t const row = size.packed ? 0 : place.sequence;
      float raw = load_element(
          call.dt.data, call.dt_type,
          row * call.dt.batch + (place.first_token + i) * call.dt.token + head * call.dt.head);
      if (call.dt_bias.data != nullptr) {
        raw += load_element(call.dt_bias.data, call.dt_bias.type, head * call.dt_bias.stride0);
      }
      delta = step_size(raw, call.softplus, call.delta_low, call.delta_high);
    }
    block.delta[e % block_heads][t] = delta;
  }
  __syncthreads();

  int const head = first_head + warp;
  if (head >= size.heads) return;
  if (blockIdx.x == 0) {
    for (int p = lane; p < size.row_tiles * tile_rows; p += 32) {
      float value = 0.0F;
      if (call.D.data != nullptr && p < size.headdim) {
        value = load_element(call.D.data, call.D.type,
                             head * call.D.stride0 + (call.D_per_channel ? p * call.D.stride1 : 0));
      }
      to.skip[static_cast<std::int64_t>(head) * size.row_tiles * tile_rows + p] = value;
    }
  }
  double const exact_rate =
      static_cast<double>(load_element(call.A.data, dtype::f32, head * call.A.stride0)) *
      1.4426950408889634;
  float const rate = static_cast<float>(exact_rate);
  int strong = 0;
  for (int which = 0; which < block_slots; ++which) {
    if (block.place[which].sequence < 0) continue;
    std::int64_t const slot = static_cast<std::int64_t>(head) * size.slots + first_slot + which;
    std::int64_t const at = slot * chunk_tokens + 2 * lane;
    float const delta[2] = {block.delta[warp][which * chunk_tokens + 2 * lane],
                            block.delta[warp][which * chunk_tokens + 2 * lane + 1]};
    float remaining[2];
    float low[2] = {0.0F, 0.0F};
    float total = 0.0F;
    if (General) {
      // Each run has sums of its own: what another one holds, NaN included, is no part of them. A
      // token of padding, whose step is 0, counts as one of the run before it.
      int runs[2];
      runs[0] = block.run_of_token[which][2 * lane];
      runs[1] = max(runs[0], block.run_of_token[which][2 * lane + 1]);
      int before = runs[1];
      for (int distance = 1; distance < 32; distance *= 2) {
        int const other = __shfl_up_sync(~0U, before, distance);
        if (lane >= distance) before = max(before, other);
      }
      before = __shfl_up_sync(~0U, before, 1);
      if (lane == 0) before = no_run;
      runs[0] = max(runs[0], before);
      runs[1] = max(runs[1], before);
      double const one = exact_rate * delta[0];
      double sum = exact_rate * delta[1];  // of the lane's later run
      if (runs[0] == runs[1]) sum += one;
      for (int distance = 1; distance < 32; distance *= 2) {
        double const other = __shfl_up_sync(~0U, sum, distance);
        int const its_run = __shfl_up_sync(~0U, runs[1], distance);
        if (lane >= distance && its_run == runs[1]) sum += other;
      }
      double const earlier = __shfl_up_sync(~0U, sum, 1);
      __syncwarp();
      block.sum[warp][2 * lane] = lane > 0 && before == runs[0] ? earlier + one : one;
      block.sum[warp][2 * lane + 1] = sum;
      __syncwarp();
      for (int k = 0; k < 2; ++k) {
        int const run = block.run_of_token[which][2 * lane + k];
        double const end = run == no_run ? block.sum[warp][2 * lane + k]
                                         : block.sum[warp][block.run_end[which][run]];
        double const r = end - block.sum[warp][2 * lane + k];
        remaining[k] = static_cast<float>(r);
        low[k] = isfinite(remaining[k]) ? static_cast<float>(r - remaining[k]) : 0.0F;
        int const mine = 2 * lane + k;  // as the index of a run
        if (mine < block.runs[which]) {
          to.run_log_decay[slot * chunk_tokens + mine] =
              static_cast<float>(block.sum[warp][block.run_end[which][mine]]);
        }
      }
      total = static_cast<float>(block.sum[warp][chunk_tokens - 1]);
      if (block.runs[which] > 1 || block.continues[which] == 0) total = -INFINITY;
      *reinterpret_cast<float2*>(to.remaining_low + at) = make_float2(low[0], low[1]);
      __syncwarp();
    } else {
      plain_decays(rate, delta, lane, remaining, total);
    }
    float const keys[2] = {exp2f(remaining[0]) * (1.0F + low[0] * 0.6931472F) * delta[0],
                           exp2f(remaining[1]) * (1.0F + low[1] * 0.6931472F) * delta[1]};
    *reinterpret_cast<float2*>(to.key_weight + at) = make_float2(keys[0], keys[1]);
    *reinterpret_cast<float2*>(to.remaining + at) = make_float2(remaining[0], remaining[1]);
    *reinterpret_cast<float2*>(to.delta + at) = make_float2(delta[0], delta[1]);
    if (to.query_weight != nullptr) {
      *reinterpret_cast<float2*>(to.query_weight + at) =
          make_float2(exp2f(-remaining[0]), exp2f(-remaining[1]));
    }
    if (lane == 0) {
      to.chunk_log_decay[slot] = total;
      to.chunk_decay[slot] = exp2f(total);
    }
    if (!(total >= -call.decay_limit)) strong |= 1 << which;  // NaN counts as strong
  }
  if (lane == 0) {
    to.strong_chunks[static_cast<std::int64_t>(head) * ((size.slots + 3) / 4) + blockIdx.x] =
        strong;
  }
}

}  // namespace

cudaError_t launch_prepare(scan_call const& call, bool general, cudaStream_t stream) {
  dim3 const grid(static_cast<unsigned>((call.size.slots + block_slots - 1) / block_slots),
                  static_cast<unsigned>((call.size.heads + block_heads - 1) / block_heads));
  if (general) {
    prepare_kernel<true><<<grid, block_heads * 32, 0, stream>>>(call);
  } else {
    prepare_kernel<false><<<grid, block_heads * 32, 0, stream>>>(call);
  }
  return cudaGetLastError();
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
