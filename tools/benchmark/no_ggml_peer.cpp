#include "benchmark/peer.hpp"

namespace mambatile::benchmark {

peer const* ggml_peer() noexcept { return nullptr; }

}  // namespace mambatile::benchmark
