#pragma once

// Numbers that choose how state_update runs on a device. Measured on an H200 (sm_90).

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Warps of many_rows each, per multiprocessor, from which on a warp takes so many rows. H80 P64
/// N128 f32, few and many rows: batch 1 .0064 and .0074 ms, 16 .0292 and .0279, 64 .103 and .090.
inline constexpr int busy_warps = 8;

/// Rows of the state that a warp takes, dstate 65 to 128 and one token.
inline constexpr int many_rows = 16;
inline constexpr int few_rows = 4;

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
