#include "forward_tma.cuh"
#include "scan_kernels.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

template <int N, bool HasZ, slab_part Part>
cudaError_t launch(scan_call const& call, int slab, cudaStream_t stream) {
  constexpr int warps = N <= 128 ? 4 : 8;
  constexpr int occupancy = N <= 128 ? 2 : 1;
  return launch_forward_tma<__nv_bfloat16, __nv_bfloat16, N, false, HasZ, Part, warps, occupancy,
                            4>(call, slab, stream);
}

template <int N, slab_part Part>
cudaError_t launch_gated(scan_call const& call, int slab, cudaStream_t stream) {
  return call.z.data != nullptr ? launch<N, true, Part>(call, slab, stream)
                                : launch<N, false, Part>(call, slab, stream);
}

}  // namespace

cudaError_t launch_forward_bf16(scan_call const& call, int columns, int slab, int slabs,
                                cudaStream_t stream) {
  if (columns == 64) return launch_gated<64, slab_part::whole>(call, slab, stream);
  if (columns == 128) return launch_gated<128, slab_part::whole>(call, slab, stream);
  if (slabs == 1) return launch_gated<256, slab_part::whole>(call, slab, stream);
  if (slab == 0) return launch<256, false, slab_part::first>(call, slab, stream);
  return launch_gated<256, slab_part::last>(call, slab, stream);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
