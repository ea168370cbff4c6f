#include <mambatile/sampler.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include <fmt/format.h>

#include <mambatile/errors.hpp>

namespace mambatile {
inline namespace v0 {

sampler::sampler(sampling_options const& options) : options_(options), state_(options.seed) {
  if (!(options.temperature >= 0.0F) || !std::isfinite(options.temperature)) {
    throw invalid_argument(fmt::format(
        "sampler: temperature = {}, but it must be a finite number >= 0", options.temperature));
  }
  if (options.top_k < 0) {
    throw invalid_argument(
        fmt::format("sampler: top_k = {}, but it must not be negative", options.top_k));
  }
  if (!(options.top_p > 0.0F && options.top_p <= 1.0F)) {
    throw invalid_argument(
        fmt::format("sampler: top_p = {}, but it must be within (0, 1]", options.top_p));
  }
}

// SplitMix64 (Steele, Lea and Flood 2014): the standard library's distributions differ between
// implementations, and a seed should mean the same everywhere.
double sampler::uniform() noexcept {
  state_ += 0x9e3779b97f4a7c15U;
  auto mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  mixed ^= mixed >> 31U;
  return static_cast<double>(mixed >> 11U) * 0x1p-53;
}

std::int32_t sampler::operator()(std::span<float const> logits) {
  std::size_t best = logits.size();
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (std::isnan(logits[id])) continue;
    if (best == logits.size() || logits[id] > logits[best]) best = id;
  }
  if (best == logits.size()) {
    throw invalid_argument(
        fmt::format("sampler: none of the {} logits is a number", logits.size()));
  }
  if (options_.temperature == 0.0F || std::isinf(logits[best])) {
    return static_cast<std::int32_t>(best);
  }

  candidates_.clear();
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (std::isnan(logits[id])) continue;
    // Relative to the largest, so that exp neither overflows nor underflows for what matters.
    auto const distance = static_cast<double>(logits[id]) - static_cast<double>(logits[best]);
    candidates_.push_back({std::exp(distance / static_cast<double>(options_.temperature)),
                           static_cast<std::int32_t>(id)});
  }
  bool const truncates = options_.top_k > 0 || options_.top_p < 1.0F;
  if (truncates) {
    std::sort(candidates_.begin(), candidates_.end(), [](auto const& left, auto const& right) {
      return left.weight != right.weight ? left.weight > right.weight : left.id < right.id;
    });
  }
  if (options_.top_k > 0 && static_cast<std::size_t>(options_.top_k) < candidates_.size()) {
    candidates_.resize(static_cast<std::size_t>(options_.top_k));
  }
  double total = 0.0;
  for (auto const& each : candidates_) total += each.weight;
  if (options_.top_p < 1.0F) {
    auto const enough = total * static_cast<double>(options_.top_p);
    double sum = 0.0;
    std::size_t kept = 0;
    while (kept < candidates_.size() && sum < enough) sum += candidates_[kept++].weight;
    candidates_.resize(kept);
    total = sum;
  }

  double left = uniform() * total;
  for (auto const& each : candidates_) {
    left -= each.weight;
    if (left < 0.0) return each.id;
  }
  return candidates_.back().id;
}

}  // namespace v0
}  // namespace mambatile
