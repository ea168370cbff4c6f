#include "status_word.hpp"

#include <string>
#include <string_view>

#include "device.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

int* clear_status_word(workspace_view workspace, cudaStream_t stream, std::string_view doing) {
  cudaError_t const error = cudaMemsetAsync(workspace.data, 0, sizeof(int), stream);
  if (error != cudaSuccess)
    check(error, (std::string(doing) + ": clearing the status word").c_str());
  return static_cast<int*>(workspace.data);
}

int read_status_word(bool present, workspace_view workspace, queue const& on,
                     std::string_view doing) {
  auto* const stream = static_cast<cudaStream_t>(on.native);
  int bits = 0;
  cudaError_t error = cudaSuccess;
  if (present) {
    error = cudaMemcpyAsync(&bits, workspace.data, sizeof(int), cudaMemcpyDeviceToHost, stream);
  }
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (error != cudaSuccess)
    check(error, (std::string(doing) + ": reading the status word").c_str());
  return bits;
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
