#pragma once

#include <cuda_runtime_api.h>

#include "../scan_call.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Copies (batch, tokens, heads, columns) elements of `element_bytes` between two layouts. The
/// slower path for views whose addresses or strides are not multiples of 16 bytes. `token_limit`
/// (device, may be null): only tokens before it.
cudaError_t launch_repack(token_tensor const& from, token_tensor const& to, int element_bytes,
                          int batch, int tokens, int heads, int columns, int const* token_limit,
                          cudaStream_t stream);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
