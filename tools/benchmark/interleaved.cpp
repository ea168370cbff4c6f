#include "benchmark/interleaved.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace mambatile::benchmark {
namespace {

template <class Call>
double seconds_of(Call const& call, int repeats = 1) {
  auto const start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  auto const middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

int rounds_within(interleaving const& how, double round_seconds) {
  return static_cast<int>(std::clamp(how.seconds / round_seconds,
                                     static_cast<double>(how.least_rounds),
                                     static_cast<double>(how.most_rounds)));
}

std::vector<timing> summaries(std::vector<std::vector<double>>&& samples) {
  std::vector<timing> results;
  for (auto& taken : samples) {
    auto const minimum = std::ranges::min(taken);
    auto const median = median_of(taken);
    auto const rounds = static_cast<int>(taken.size());
    results.push_back({minimum, median, rounds, std::move(taken)});
  }
  return results;
}

}  // namespace

double median_ratio(timing const& of, timing const& to) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < std::min(of.samples.size(), to.samples.size()); ++round) {
    ratios.push_back(of.samples[round] / to.samples[round]);
  }
  return ratios.empty() ? 0 : median_of(std::move(ratios));
}

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
  auto const rounds = rounds_within(how, round_seconds);
  std::vector<std::vector<double>> samples(candidates.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      samples[i].push_back(seconds_of(candidates[i], repeats[i]) * 1e3 / repeats[i]);
    }
  }
  return summaries(std::move(samples));
}

std::vector<timing> time_in_turn(
    std::vector<std::function<void(std::int64_t piece)>> const& candidates, std::int64_t pieces,
    interleaving const& how) {
  auto const run = [&](std::vector<double>& totals) {
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        totals[i] += seconds_of([&] { candidates[i](piece); });
      }
    }
  };
  std::vector<double> first(candidates.size(), 0.0);
  run(first);
  auto const round_seconds = std::accumulate(first.begin(), first.end(), 1e-8);
  std::vector<std::vector<double>> samples(candidates.size());
  for (int round = rounds_within(how, round_seconds); round > 0; --round) {
    std::vector<double> totals(candidates.size(), 0.0);
    run(totals);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      samples[i].push_back(totals[i] * 1e3 / static_cast<double>(pieces));
    }
  }
  return summaries(std::move(samples));
}

}  // namespace mambatile::benchmark
