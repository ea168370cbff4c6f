#include "device.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <mambatile/errors.hpp>

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

constexpr std::array compiled_architectures = {MAMBATILE_CUDA_ARCHITECTURES};

}  // namespace

device_scope::device_scope(int index) {
  check(cudaGetDevice(&previous_), "asking for the current device");
  if (previous_ == index) return;
  check(cudaSetDevice(index), "making the device current");
  changed_ = true;
}

device_scope::~device_scope() {
  if (changed_) static_cast<void>(cudaSetDevice(previous_));
}

support runtime_available() {
  int count = 0;
  cudaError_t const error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return {false, fmt::format("cuda: {}", cudaGetErrorString(error))};
  }
  if (count == 0) return {false, "cuda: no device"};
  return {true, {}};
}

int count_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  return count;
}

device_properties properties_of(int index) {
  auto const attribute = [&](cudaDeviceAttr name) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, name, index), "reading a device attribute");
    return value;
  };
  device_properties properties;
  properties.architecture = 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
                            attribute(cudaDevAttrComputeCapabilityMinor);
  properties.multiprocessors = attribute(cudaDevAttrMultiProcessorCount);
  return properties;
}

std::string device_name(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "reading a device's name");
  return properties.name;
}

support compiled_for(device_properties const& properties) {
  if (std::find(compiled_architectures.begin(), compiled_architectures.end(),
                properties.architecture) != compiled_architectures.end()) {
    return {true, {}};
  }
  return {false, fmt::format("the device has architecture sm_{}, but the kernels were compiled for "
                             "sm_{}",
                             properties.architecture, fmt::join(compiled_architectures, ", sm_"))};
}

void check(cudaError_t error, char const* doing) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw backend_failure(
      fmt::format("cuda: {}: {} ({})", doing, cudaGetErrorString(error), cudaGetErrorName(error)));
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
