#pragma once

#include <bit>
#include <cstdint>

#include <mambatile/dtype.hpp>

// Stochastic rounding of states, defined once for all backends: which random word belongs to which
// element of a state, and how the word rounds. Lane-wise 32-bit arithmetic, for vector units.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// What the words of one state (a row's head after one token) are drawn with.
struct rounding_key {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t word) noexcept {
  word = (word ^ (word >> 30U)) * 0xbf58476d1ce4e5b9U;
  word = (word ^ (word >> 27U)) * 0x94d049bb133111ebU;
  return word ^ (word >> 31U);
}

/// A bijection of 32-bit words in which every input bit moves every output bit (Wellons 2018,
/// "lowbias32").
[[nodiscard]] constexpr std::uint32_t mix(std::uint32_t word) noexcept {
  word = (word ^ (word >> 16U)) * 0x7feb352dU;
  word = (word ^ (word >> 15U)) * 0x846ca68bU;
  return word ^ (word >> 16U);
}

/// `token` counts the tokens of the call, from 0.
[[nodiscard]] constexpr rounding_key make_rounding_key(std::uint64_t seed, std::int32_t row_id,
                                                       std::int64_t head,
                                                       std::int64_t token) noexcept {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;
  std::uint64_t word = mix(seed + golden);
  word = mix(word + golden + static_cast<std::uint32_t>(row_id));
  word = mix(word + golden + static_cast<std::uint64_t>(head));
  word = mix(word + golden + static_cast<std::uint64_t>(token));
  return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32U)};
}

/// The word of element (p, n) of the state; `element` = p * dstate + n, modulo 2^32.
[[nodiscard]] constexpr std::uint32_t rounding_word(rounding_key key,
                                                    std::uint32_t element) noexcept {
  return mix(mix(element + key.first) ^ key.second);
}

/// Up or down to a neighbour, with the probability of its nearness; what can be represented stays.
/// Beyond the largest number the next step up is infinity. NaN stays NaN.
template <class Element>
[[nodiscard]] constexpr Element round_stochastically(float value, std::uint32_t word) noexcept;

template <>
[[nodiscard]] constexpr bfloat16 round_stochastically(float value, std::uint32_t word) noexcept {
  auto const bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7f800000U) == 0x7f800000U) return bfloat16(value);
  return bfloat16::from_bits(static_cast<std::uint16_t>((bits + (word >> 16U)) >> 16U));
}

template <>
[[nodiscard]] constexpr float16 round_stochastically(float value, std::uint32_t word) noexcept {
  auto const bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t const sign = (bits >> 16U) & 0x8000U;
  std::uint32_t const magnitude = bits & 0x7fffffffU;
  if (magnitude >= 0x7f800000U) return float16(value);
  std::uint32_t const offset = word >> 19U;  // 13 bits: what a float16 has less than an f32
  std::uint32_t rounded = 0;
  if (magnitude < 0x38800000U) {
    // Below the smallest normal number: whole steps of 2^-24.
    float const steps = std::bit_cast<float>(magnitude) * 0x1p24F;
    rounded = static_cast<std::uint32_t>(steps + static_cast<float>(offset) * 0x1p-13F);
  } else {
    rounded = (magnitude + offset - 0x38000000U) >> 13U;
    if (rounded > 0x7c00U) rounded = 0x7c00U;
  }
  return float16::from_bits(static_cast<std::uint16_t>(sign | rounded));
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
