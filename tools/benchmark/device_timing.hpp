#pragma once

#include <cstddef>
#include <functional>

#include "benchmark/interleaved.hpp"

// Timing of work on a GPU: what one call enqueues is captured into a graph, and each replay of it
// starts with cold caches and is timed by the device's own clock.

namespace mambatile::benchmark {

/// False where the program was built without CUDA; nothing else here may be called then.
[[nodiscard]] bool can_time_devices() noexcept;

/// `enqueue` puts one call on the stream that it is given (a cudaStream_t).
[[nodiscard]] timing time_on_device(std::function<void(void* stream)> const& enqueue, int rounds);

/// The roof of what reads and writes memory in place: a kernel that adds to every element, timed
/// the same way. GB/s, bytes read plus bytes written.
[[nodiscard]] double in_place_gbytes_per_s(std::size_t bytes, int rounds);

}  // namespace mambatile::benchmark
