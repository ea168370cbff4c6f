#pragma once

#include <cuda_runtime_api.h>

#include "../state_update_call.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Most elements that one row of a state may have: a block of 16 warps.
inline constexpr int most_update_columns = 16 * 512;

/// Most channels of a head: blocks along y, one channel each in the widest form.
inline constexpr int most_update_channels = 65535;

/// `rows`: channels that a warp takes where dstate is 65 to 128: many_rows or few_rows.
cudaError_t launch_state_update(state_update_call const& call, int rows, cudaStream_t stream);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
