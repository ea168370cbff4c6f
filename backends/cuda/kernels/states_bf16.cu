#include "scan_kernels.hpp"
#include "states_tma.cuh"

namespace mambatile {
inline namespace v0 {
namespace gpu {

cudaError_t launch_states_bf16(scan_call const& call, cudaStream_t stream) {
  using io = __nv_bfloat16;
  if (call.size.packed) return launch_states_tma<io, io, 128, true, 4, 2, 4>(call, stream);
  if (call.size.state_columns % 128 == 0) {
    return launch_states_tma<io, io, 128, false, 4, 2, 4>(call, stream);
  }
  return launch_states_tma<io, io, 64, false, 4, 2, 4>(call, stream);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
