#include "forward_general.cuh"
#include "scan_kernels.hpp"

// f16 io. Products in tf32, which holds every f16 and has f32's exponent range: decayed weights and
// states would leave that of f16.

namespace mambatile {
inline namespace v0 {
namespace gpu {

cudaError_t launch_forward_general_f16(scan_call const& call, int slab, int slabs,
                                       cudaStream_t stream) {
  return launch_forward_general<__half, __nv_tf32, 128, 8>(call, slab, slabs, stream);
}

cudaError_t launch_states_general_f16(scan_call const& call, cudaStream_t stream) {
  return launch_states_general<__half, __nv_tf32, 128, 8>(call, stream);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
