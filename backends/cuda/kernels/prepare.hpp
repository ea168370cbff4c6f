#pragma once

#include <cuda_runtime_api.h>

#include "../scan_call.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Writes `prepared`. `general` also fills what the general kernels read (runs and low parts).
/// Adds to the status word, which the caller clears.
cudaError_t launch_prepare(scan_call const& call, bool general, cudaStream_t stream);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
