#pragma once

#include <cstddef>
#include <string>

#include <cuda_runtime_api.h>

#include <mambatile/plan.hpp>
#include <mambatile/tensor_view.hpp>

#include "device_properties.hpp"

// Devices of the CUDA backend: what they are, errors, and working on one of them.

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Makes a device current, and the previous one again when it goes out of scope.
class device_scope {
 public:
  explicit device_scope(int index);
  device_scope(device_scope const&) = delete;
  device_scope& operator=(device_scope const&) = delete;
  ~device_scope();

 private:
  int previous_ = 0;
  bool changed_ = false;
};

/// Whether there is a driver and a device, and why not.
[[nodiscard]] support runtime_available();
/// 0 when there is none.
[[nodiscard]] int count_devices();
[[nodiscard]] device_properties properties_of(int index);
[[nodiscard]] std::string device_name(int index);
/// Whether the kernels were compiled for this architecture.
[[nodiscard]] support compiled_for(device_properties const& properties);

/// @throws backend_failure naming what was being done, unless `error` is cudaSuccess.
void check(cudaError_t error, char const* doing);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
