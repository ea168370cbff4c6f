#pragma once

// Bits of the status word that kernels leave in the workspace.

namespace mambatile {
inline namespace v0 {
namespace gpu {

inline constexpr int status_bad_cu_seqlens = 1;
inline constexpr int status_bad_slot = 2;
inline constexpr int status_bad_count = 4;
inline constexpr int status_bad_seq_idx = 8;

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
