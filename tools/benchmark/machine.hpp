#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

// What the machine can do at best: the roof that timings are held against. All of it runs on OpenMP
// threads, compiled for the CPU at hand.

namespace mambatile::benchmark {

/// The CPU's name, its vector registers as these measurements use them, its caches.
[[nodiscard]] std::string machine_text();

/// Size of the last-level cache in bytes; 32 MiB where the system does not tell.
[[nodiscard]] std::size_t last_level_cache_bytes();

/// Independent chains of f32 multiply-adds without memory access: what it takes is the roof of
/// everything that multiplies. Timed in turn with a candidate, it meets the same clock and the same
/// neighbours on the core's other hardware thread.
class fma_probe {
 public:
  explicit fma_probe(int threads) noexcept : threads_(threads) {}
  void operator()() const;
  /// Billions of f32 operations of one call; a multiply-add counts as two.
  [[nodiscard]] double gflop() const noexcept;

 private:
  int threads_;
};

/// Billions of f32 operations a second of the probe: the best of some calls.
[[nodiscard]] double fma_peak_gflops(int threads);

/// values = values * 0.999 + 0.001: reads and writes each element once. Each thread has one
/// contiguous part.
void update_in_place(std::span<float> values, int threads);

/// Copies by plain loads and stores, without non-temporal ones. Equal sizes.
void copy_plainly(std::span<float const> source, std::span<float> target, int threads);

/// Bytes read and written per second, in billions, of the two loops above over memory well beyond
/// the caches: the best of some runs.
struct memory_rates {
  double in_place = 0;
  double copy = 0;
};
[[nodiscard]] memory_rates measure_memory_rates(int threads);

}  // namespace mambatile::benchmark
