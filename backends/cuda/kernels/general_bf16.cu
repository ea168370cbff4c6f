#include "forward_general.cuh"
#include "scan_kernels.hpp"

// bf16 io and products.

namespace mambatile {
inline namespace v0 {
namespace gpu {

cudaError_t launch_forward_general_bf16(scan_call const& call, int slab, int slabs,
                                        cudaStream_t stream) {
  return launch_forward_general<__nv_bfloat16, __nv_bfloat16, 128, 8>(call, slab, slabs, stream);
}

cudaError_t launch_states_general_bf16(scan_call const& call, cudaStream_t stream) {
  return launch_states_general<__nv_bfloat16, __nv_bfloat16, 128, 8>(call, stream);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
