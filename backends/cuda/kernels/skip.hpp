#pragma once

#include <cuda_runtime_api.h>

#include "../scan_call.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// chunk_scan without a state (dstate 0): out = D x, gated. Zeros where seq_idx is -1; tokens
/// beyond the last packed sequence are left alone.
cudaError_t launch_skip(scan_call const& call, dtype io, cudaStream_t stream);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
