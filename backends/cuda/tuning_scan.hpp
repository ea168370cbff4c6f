#pragma once

#include <cstdint>

// Numbers that choose how chunk_scan runs on a device. Measured on an H200 (sm_90) unless said.

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Blocks that run at once on one multiprocessor, by columns of the state tile.
inline constexpr int resident_blocks_narrow = 2;  ///< 64 or 128 columns, tuned kernels
inline constexpr int resident_blocks_wide = 1;    ///< 256 columns, and the general kernels

/// Fewest chunks that a segment is worth. 4: B4 H8 T1024 and B1 H24 T2048 fastest so.
inline constexpr int least_segment_chunks = 4;

/// Up to this many end states are folded by the forward kernel itself; more are passed on by a
/// kernel of its own. Unmeasured; folding costs each block one 32 KiB read per state.
inline constexpr int most_folded_entries = 16;

/// Most splits of the search for a segment's end state. 3: B1 H80 T32768 .128 -> .082 ms.
inline constexpr int most_splits = 3;

/// Segment length of batch-invariant plans, in chunks. Unmeasured.
inline constexpr int invariant_segment_chunks = 16;

/// A chunk whose decay exceeds this many powers of two takes the exact form: below, 2^-r and the
/// products it scales stay inside the exponent range that bf16, tf32 and f32 share (2^-126), with
/// 46 powers of two left for small delta x.
inline constexpr float decay_limit = 80.0F;

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
