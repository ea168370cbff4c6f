#pragma once

#include <cstdint>

#include <mambatile/dtype.hpp>

#include "kernel_tensors.hpp"

// What the kernels of chunk_scan are launched with: sizes, tensors and workspace pieces of one
// call. Plain data, readable by the host compiler and by nvcc.

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Tokens per chunk, and rows of x (channels of a head) per tile.
inline constexpr int chunk_tokens = 64;
inline constexpr int tile_rows = 64;

/// How sequences lie in chunks and segments. A chunk slot is a place for one chunk's prepared
/// numbers. A segment is a run of `segment_chunks` chunks of one sequence that one block walks; its
/// last may be shorter. `splits` blocks share the search for a segment's end state.
///
/// Dense: sequence q owns the slots [q c, (q + 1) c) with c chunks per row, and the segments
/// [q s, (q + 1) s). Packed: sequence q that starts at token t owns slots from t / 64 + q and
/// segments from t / (64 segment_chunks) + q; gaps are unused.
struct scan_sizes {
  int sequences = 0;
  int seqlen = 0;  ///< tokens per row, or of the packed axis
  int heads = 0;
  int groups = 1;
  int headdim = 0;
  int dstate = 0;
  int row_tiles = 1;      ///< tiles of 64 channels per head
  int state_columns = 0;  ///< columns of a stored state: dstate rounded up to the tiles used
  int slots = 0;          ///< chunk slots
  int row_chunks = 0;     ///< dense: chunks per row
  int row_segments = 0;   ///< dense: segments per row
  int segments = 0;       ///< segment slots
  int segment_chunks = 1;
  int entries = 0;  ///< states kept for the forward kernel
  int splits = 1;
  bool packed = false;
  bool keep_last = false;    ///< end states of last segments are kept too (snapshots)
  bool has_initial = false;  ///< entry 0 of a sequence is its initial state
  bool passed = false;       ///< entries hold states, not contributions (after the passing kernel)
};

/// Prepared numbers per head and chunk slot, all in log2 units where logarithms. r = decay from a
/// token (exclusive) to the end of its chunk, or, with seq_idx, of its run within the chunk.
struct scan_prepared {
  float* key_weight = nullptr;       ///< (h, slots 64): 2^r delta
  float* query_weight = nullptr;     ///< (h, slots 64): 2^-r
  float* remaining = nullptr;        ///< (h, slots 64): r
  float* remaining_low = nullptr;    ///< (h, slots 64): what rounding r to f32 lost
  float* delta = nullptr;            ///< (h, slots 64)
  float* chunk_log_decay = nullptr;  ///< (h, slots): decay over the chunk, -inf where it resets
  float* chunk_decay = nullptr;      ///< (h, slots): 2^ of it
  int* strong_chunks = nullptr;      ///< (h, ceil(slots / 4)): bit i: chunk 4 w + i is too strong
  float* run_log_decay = nullptr;    ///< (h, slots 64): decay over the chunk's k-th run
  float* skip = nullptr;             ///< (h, row_tiles 64): D, 0 where absent
  int* run_of_token = nullptr;       ///< (slots 64): run of a token within its chunk, -1 = none
  int* chunk_runs = nullptr;         ///< (slots): runs of the chunk
  int* chunk_continues = nullptr;    ///< (slots): run 0 goes on with the carried state
  int* segment_sequence = nullptr;   ///< packed, (segments): sequence of a segment slot, -1 = none
  float* entries = nullptr;          ///< (entries, h, row_tiles, 64, state_columns)
  float* entry_decay = nullptr;      ///< (entries, h)
  float* partial = nullptr;          ///< (slots, h, row_tiles, 64 channels, 64 tokens)
  int* status = nullptr;
};

/// One call of chunk_scan.
struct scan_call {
  scan_sizes size;
  scan_prepared prepared;
  token_tensor x, z, B, C, out;
  token_tensor dt;  ///< (batch, token, head)
  dtype dt_type = dtype::f32;
  small_tensor A, D, dt_bias;
  bool D_per_channel = false;
  bool softplus = false;
  float delta_low = 0;
  float delta_high = 0;
  float decay_limit = 0;  ///< log2 units: chunks that decay more are strong
  int const* cu_seqlens = nullptr;
  std::int64_t cu_stride = 1;
  small_tensor seq_idx;
  state_tensor initial_states, final_states, intermediate_states;
  small_tensor state_source, state_target;
  int source_slots = 0;
  int target_slots = 0;
  std::int64_t intermediate_row = 0;  ///< dense: stride of intermediate_states over rows
  int intermediate_chunks = 0;        ///< chunks between snapshots; 0 = none
  float* total_decay = nullptr;
  std::int64_t total_decay_row = 0;
  std::int64_t total_decay_head = 0;
  state_tensor final_target;  ///< f32, n stride 1: where the forward kernel leaves final states
};

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
