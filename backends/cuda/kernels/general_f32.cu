#include "forward_general.cuh"
#include "scan_kernels.hpp"

// f32 io, accurate products.

namespace mambatile {
inline namespace v0 {
namespace gpu {

cudaError_t launch_forward_general_f32(scan_call const& call, int slab, int slabs,
                                       cudaStream_t stream) {
  return launch_forward_general<float, tf32x3, 64, 8>(call, slab, slabs, stream);
}

cudaError_t launch_states_general_f32(scan_call const& call, cudaStream_t stream) {
  return launch_states_general<float, tf32x3, 64, 8>(call, stream);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
