#include "device_tensor.hpp"

#include <algorithm>

namespace mambatile::program {
namespace {

std::size_t bytes_of(const_tensor_view const& view) {
  return static_cast<std::size_t>(view.size()) * size_of(view.type);
}

}  // namespace

const_tensor_view device_tensors::input(const_tensor_view const& host) {
  if (!host || on_.where == host.where) return host;
  return copy(host);
}

tensor_view device_tensors::output(tensor_view const& host) {
  if (!host || on_.where == host.where) return host;
  auto const view = copy(host);
  outputs_.push_back({host, view.data});
  return view;
}

tensor_view device_tensors::copy(const_tensor_view const& host) {
  auto const bytes = bytes_of(host);
  auto& memory =
      buffers_.emplace_back(backend_.allocate(on_.where, std::max<std::size_t>(bytes, 1)));
  if (bytes != 0) backend_.copy_to_device(memory.data(), host.data, bytes, on_);
  return {memory.data(), host.type, on_.where, host.rank, host.extents, host.strides};
}

void device_tensors::fetch() {
  for (auto const& output : outputs_) {
    auto const bytes = bytes_of(output.host);
    if (bytes != 0) backend_.copy_to_host(output.host.data, output.device, bytes, on_);
  }
  backend_.synchronize(on_);
}

}  // namespace mambatile::program
