#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace mambatile::evaluation {

/// A seeded stream of numbers, the same on every machine.
class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) noexcept : state_(seed) {}
  /// A stream of its own for each name, so that one tensor's numbers do not depend on another's
  /// presence or size.
  random_numbers(std::uint64_t seed, std::string_view name) noexcept : state_(seed) {
    for (char const letter : name) {
      state_ = bits() ^ static_cast<unsigned char>(letter);
    }
  }

  /// splitmix64 (Steele, Lea, Flood 2014).
  std::uint64_t bits() noexcept {
    std::uint64_t word = state_ += increment;
    word = (word ^ (word >> 30U)) * 0xbf58476d1ce4e5b9U;
    word = (word ^ (word >> 27U)) * 0x94d049bb133111ebU;
    return word ^ (word >> 31U);
  }
  /// Leaves out the next `count` words.
  void skip(std::uint64_t count) noexcept { state_ += count * increment; }
  /// In (0, 1].
  double uniform() noexcept { return (static_cast<double>(bits() >> 11U) + 1.0) * 0x1p-53; }
  double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }
  double log_uniform(double low, double high) noexcept {
    return std::exp(uniform(std::log(low), std::log(high)));
  }
  double normal() noexcept {
    double const radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  /// In [0, count).
  std::int64_t index(std::int64_t count) noexcept {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(count));
  }

 private:
  static constexpr std::uint64_t increment = 0x9e3779b97f4a7c15U;

  std::uint64_t state_;
};

}  // namespace mambatile::evaluation
