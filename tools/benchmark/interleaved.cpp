#include "benchmark/interleaved.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace mambatile::benchmark {
namespace {

double seconds_of(std::function<void()> const& call, int repeats) {
  auto const start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  auto const middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

std::vector<timing> time_interleaved(std::vector<std::function<void()>> const& candidates,
                                     interleaving const& how) {
  std::vector<int> repeats;
  double round_seconds = 0;
  for (auto const& candidate : candidates) {
    candidate();
    double const once = std::max(seconds_of(candidate, 1), 1e-8);
    auto const count = static_cast<int>(std::clamp(std::ceil(how.sample_seconds / once), 1.0, 1e5));
    repeats.push_back(count);
    round_seconds += count * once;
  }
  auto const rounds = static_cast<int>(std::clamp(how.seconds / round_seconds,
                                                  static_cast<double>(how.least_rounds),
                                                  static_cast<double>(how.most_rounds)));

  std::vector<std::vector<double>> samples(candidates.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      samples[i].push_back(seconds_of(candidates[i], repeats[i]) * 1e3 / repeats[i]);
    }
  }
  std::vector<timing> results;
  for (auto const& taken : samples) {
    results.push_back({std::ranges::min(taken), median_of(taken), rounds});
  }
  return results;
}

}  // namespace mambatile::benchmark
