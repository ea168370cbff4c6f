#pragma once

#include <cstddef>
#include <string_view>

#include <mambatile/plan.hpp>

#include <cuda_runtime_api.h>

// The status word of a call, at the start of its workspace: what kernels found in index arrays.

namespace mambatile {
inline namespace v0 {
namespace gpu {

inline constexpr std::size_t status_word_bytes = workspace_alignment;

/// Enqueues its clearing; returns where it is.
int* clear_status_word(workspace_view workspace, cudaStream_t stream, std::string_view doing);

/// Waits for the queue and returns the word; 0 where the call has none.
[[nodiscard]] int read_status_word(bool present, workspace_view workspace, queue const& on,
                                   std::string_view doing);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
