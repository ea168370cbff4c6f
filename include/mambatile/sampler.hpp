#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <mambatile/export.hpp>

/// @file
/// Choosing the next token from logits.

namespace mambatile {
inline namespace v0 {

/// How a token is chosen. The defaults choose greedily.
struct sampling_options {
  float temperature = 0.0F;  ///< logits are divided by it; 0 = the largest logit wins
  std::int64_t top_k = 0;    ///< only the k largest take part; 0 = all
  float top_p = 1.0F;        ///< only the most probable ones whose sum reaches p take part
  std::uint64_t seed = 0;    ///< the same seed and logits give the same tokens
};

/// Draws tokens. Ties go to the lower id. NaN logits never win unless all are NaN, which is an
/// error.
class MAMBATILE_EXPORT sampler {
 public:
  /// @throws invalid_argument for a negative or non-finite temperature, top_k < 0, or top_p outside
  ///   (0, 1].
  explicit sampler(sampling_options const& options);

  /// The next token.
  /// @throws invalid_argument when there are no logits, or none is a number.
  [[nodiscard]] std::int32_t operator()(std::span<float const> logits);

 private:
  [[nodiscard]] double uniform() noexcept;

  sampling_options options_;
  std::uint64_t state_;
  struct candidate {
    double weight;
    std::int32_t id;
  };
  std::vector<candidate> candidates_;
};

}  // namespace v0
}  // namespace mambatile
