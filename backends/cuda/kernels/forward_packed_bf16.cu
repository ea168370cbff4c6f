#include "forward_tma.cuh"
#include "scan_kernels.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

cudaError_t launch_forward_packed_bf16(scan_call const& call, cudaStream_t stream) {
  using io = __nv_bfloat16;
  return call.z.data != nullptr
             ? launch_forward_tma<io, io, 128, true, true, slab_part::whole, 4, 2, 4>(call, 0,
                                                                                      stream)
             : launch_forward_tma<io, io, 128, true, false, slab_part::whole, 4, 2, 4>(call, 0,
                                                                                       stream);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
