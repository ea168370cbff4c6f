#pragma once

// Numbers that choose how state_update runs on a device. Measured on an H200 (sm_90).

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Warps that keep one multiprocessor busy: with fewer, each takes fewer rows of the state.
inline constexpr int busy_warps = 128;

/// Rows of the state that a warp takes, dstate 65 to 128. H80 P64 N128: 16 from batch 64 on, 4
/// below.
inline constexpr int many_rows = 16;
inline constexpr int few_rows = 4;

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
