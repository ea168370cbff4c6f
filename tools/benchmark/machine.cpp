#include "benchmark/machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <memory>

#include <omp.h>

#include <fmt/format.h>

namespace mambatile::benchmark {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif
typedef float vector_type __attribute__((vector_size(vector_bytes)));

// Enough to cover latency times throughput (at most 4 x 2 or 5 x 2) in 16 registers.
constexpr int chains = 12;
constexpr int lanes = vector_bytes / 4;
// About half a millisecond: long against the start of a parallel region.
constexpr std::int64_t probe_iterations = 200'000;

/// A sum that keeps the compiler from dropping the work.
float run_chains(std::int64_t iterations, float factor, float addend) {
  vector_type sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = vector_type{} + static_cast<float>(i);
  vector_type const a = vector_type{} + factor;
  vector_type const b = vector_type{} + addend;
  for (std::int64_t step = 0; step < iterations; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sums[i] = sums[i] * a + b;
  }
  vector_type total = sums[0];
  for (int i = 1; i < chains; ++i) total += sums[i];
  float result = 0;
  for (int lane = 0; lane < lanes; ++lane) result += total[lane];
  return result;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct part {
  std::size_t begin, end;
};

/// This thread's contiguous part, in whole cache lines.
part part_of(std::size_t size) {
  auto const threads = static_cast<std::size_t>(omp_get_num_threads());
  auto const thread = static_cast<std::size_t>(omp_get_thread_num());
  auto const line = std::size_t{16};
  auto const share = (size + threads * line - 1) / (threads * line) * line;
  return {std::min(size, thread * share), std::min(size, (thread + 1) * share)};
}

}  // namespace

std::string machine_text() {
  std::string name = "unknown CPU";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      name = line.substr(line.find(':') + 2);
      break;
    }
  }
  return fmt::format("{}, {} processors, {}-bit vectors, L1d {} KiB, L2 {} KiB, L3 {} MiB", name,
                     omp_get_num_procs(), vector_bytes * 8, sysconf(_SC_LEVEL1_DCACHE_SIZE) / 1024,
                     sysconf(_SC_LEVEL2_CACHE_SIZE) / 1024,
                     static_cast<double>(sysconf(_SC_LEVEL3_CACHE_SIZE)) / (1024 * 1024));
}

std::size_t last_level_cache_bytes() {
  auto const bytes = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{32} << 20U;
}

void fma_probe::operator()() const {
  [[maybe_unused]] static float volatile sink = 0;
#pragma omp parallel num_threads(threads_)
  {
    float const result = run_chains(probe_iterations, 0.999F, 0.001F);
#pragma omp atomic write
    sink = result;
  }
}

double fma_probe::gflop() const noexcept {
  return 2e-9 * chains * lanes * static_cast<double>(probe_iterations) * threads_;
}

double fma_peak_gflops(int threads) {
  fma_probe const probe(threads);
  probe();  // wakes the threads up and lets the clock settle
  double best = 0;
  for (int run = 0; run < 12; ++run) {
    double const start = seconds_now();
    probe();
    best = std::max(best, probe.gflop() / (seconds_now() - start));
  }
  return best;
}

void update_in_place(std::span<float> values, int threads) {
#pragma omp parallel num_threads(threads)
  {
    auto const [begin, end] = part_of(values.size());
    float* const data = values.data();
    for (std::size_t i = begin; i < end; ++i) data[i] = data[i] * 0.999F + 0.001F;
  }
}

void copy_plainly(std::span<float const> source, std::span<float> target, int threads) {
#pragma omp parallel num_threads(threads)
  {
    auto const [begin, end] = part_of(source.size());
    float const* const from = source.data();
    float* const to = target.data();
    for (std::size_t i = begin; i < end; ++i) to[i] = from[i];
  }
}

memory_rates measure_memory_rates(int threads) {
  auto const size = std::max(std::size_t{64} << 20U, 2 * last_level_cache_bytes()) / 4;
  std::unique_ptr<float[]> const source(new float[size]);
  std::unique_ptr<float[]> const target(new float[size]);
  std::fill_n(source.get(), size, 1.0F);
  std::fill_n(target.get(), size, 1.0F);
  auto const bytes = 2.0 * 4.0 * static_cast<double>(size);
  memory_rates best;
  for (int run = 0; run < 4; ++run) {
    double const start = seconds_now();
    update_in_place({source.get(), size}, threads);
    double const middle = seconds_now();
    copy_plainly({source.get(), size}, {target.get(), size}, threads);
    double const end = seconds_now();
    best.in_place = std::max(best.in_place, bytes / (middle - start) * 1e-9);
    best.copy = std::max(best.copy, bytes / (end - middle) * 1e-9);
  }
  return best;
}

}  // namespace mambatile::benchmark
