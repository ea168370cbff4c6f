#pragma once

#include <cuda_runtime_api.h>

#include "../scan_call.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Copies initial states of any type, stride and slot into entry 0 of every sequence.
cudaError_t launch_gather_initial(scan_call const& call, cudaStream_t stream);
/// Turns end contributions into states, entry by entry, and writes the snapshots that fall on them.
cudaError_t launch_pass_states(scan_call const& call, cudaStream_t stream);
/// Copies the final states that the forward kernel left in the workspace to their tensor.
cudaError_t launch_export_final(scan_call const& call, cudaStream_t stream);
/// exp of the sum of delta A per sequence and head.
cudaError_t launch_total_decay(scan_call const& call, cudaStream_t stream);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
