#include "scan_kernels.hpp"
#include "states_tma.cuh"

namespace mambatile {
inline namespace v0 {
namespace gpu {

cudaError_t launch_states_bf16(scan_call const& call, cudaStream_t stream) {
  if (call.size.state_columns % 128 == 0) {
    return launch_states_tma<__nv_bfloat16, __nv_bfloat16, 128, 4, 2, 4>(call, stream);
  }
  return launch_states_tma<__nv_bfloat16, __nv_bfloat16, 64, 4, 2, 4>(call, stream);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
