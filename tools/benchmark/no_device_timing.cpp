#include <stdexcept>

#include "benchmark/device_timing.hpp"

namespace mambatile::benchmark {

bool can_time_devices() noexcept { return false; }

timing time_on_device(std::function<void(void* stream)> const& /*enqueue*/, int /*rounds*/) {
  throw std::logic_error("built without CUDA");
}

double in_place_gbytes_per_s(std::size_t /*bytes*/, int /*rounds*/) {
  throw std::logic_error("built without CUDA");
}

}  // namespace mambatile::benchmark
