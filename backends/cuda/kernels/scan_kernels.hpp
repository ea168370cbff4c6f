#pragma once

#include <cuda_runtime_api.h>

#include "../scan_call.hpp"

// The tile stages of chunk_scan: what one translation unit each launches.

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// One slab (of `slabs`, `columns` wide) of the forward pass, and the end states of segments.
/// columns: 64, 128 or 256; two slabs only of 256.
cudaError_t launch_forward_bf16(scan_call const& call, int columns, int slab, int slabs,
                                cudaStream_t stream);
/// Packed sequences, dstate up to 128, one slab of 128 columns.
cudaError_t launch_forward_packed_bf16(scan_call const& call, cudaStream_t stream);
cudaError_t launch_states_bf16(scan_call const& call, cudaStream_t stream);

/// For every option. Slabs of 128 columns; of 64 for accurate f32.
cudaError_t launch_forward_general_bf16(scan_call const& call, int slab, int slabs,
                                        cudaStream_t stream);
cudaError_t launch_forward_general_f16(scan_call const& call, int slab, int slabs,
                                       cudaStream_t stream);
cudaError_t launch_forward_general_tf32(scan_call const& call, int slab, int slabs,
                                        cudaStream_t stream);
cudaError_t launch_forward_general_f32(scan_call const& call, int slab, int slabs,
                                       cudaStream_t stream);
cudaError_t launch_states_general_bf16(scan_call const& call, cudaStream_t stream);
cudaError_t launch_states_general_f16(scan_call const& call, cudaStream_t stream);
cudaError_t launch_states_general_tf32(scan_call const& call, cudaStream_t stream);
cudaError_t launch_states_general_f32(scan_call const& call, cudaStream_t stream);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
