#include "repack.hpp"

// Grid: elements, 256 threads, a thread per element; columns fastest.

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

constexpr int block_threads = 256;

template <class Element>
__global__ void __launch_bounds__(block_threads)
    repack_kernel(Element const* __restrict__ from, std::int64_t from_batch,
                  std::int64_t from_token, std::int64_t from_head, Element* __restrict__ to,
                  std::int64_t to_batch, std::int64_t to_token, std::int64_t to_head,
                  std::int64_t count, int tokens, int heads, int columns,
                  int const* __restrict__ token_limit) {
  std::int64_t const index = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (index >= count) return;
  std::int64_t rest = index / columns;
  std::int64_t const column = index - rest * columns;
  std::int64_t const head = rest % heads;
  rest /= heads;
  std::int64_t const token = rest % tokens;
  std::int64_t const batch = rest / tokens;
  if (token_limit != nullptr && token >= *token_limit) return;
  to[batch * to_batch + token * to_token + head * to_head + column] =
      from[batch * from_batch + token * from_token + head * from_head + column];
}

template <class Element>
cudaError_t launch(token_tensor const& from, token_tensor const& to, int batch, int tokens,
                   int heads, int columns, int const* token_limit, cudaStream_t stream) {
  std::int64_t const count = static_cast<std::int64_t>(batch) * tokens * heads * columns;
  if (count == 0) return cudaSuccess;
  auto const blocks = static_cast<unsigned>((count + block_threads - 1) / block_threads);
  repack_kernel<<<blocks, block_threads, 0, stream>>>(
      static_cast<Element const*>(from.data), from.batch, from.token, from.head,
      static_cast<Element*>(to.data), to.batch, to.token, to.head, count, tokens, heads, columns,
      token_limit);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_repack(token_tensor const& from, token_tensor const& to, int element_bytes,
                          int batch, int tokens, int heads, int columns, int const* token_limit,
                          cudaStream_t stream) {
  return element_bytes == 2
             ? launch<std::uint16_t>(from, to, batch, tokens, heads, columns, token_limit, stream)
             : launch<std::uint32_t>(from, to, batch, tokens, heads, columns, token_limit, stream);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
