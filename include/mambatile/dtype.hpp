#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// @file
/// Element types, and storage types for the two 16-bit floating-point formats.

namespace mambatile {
inline namespace v0 {

/// Element type of a tensor.
enum class dtype : std::uint8_t { f32, bf16, f16, i32 };

/// Size of one element in bytes.
[[nodiscard]] constexpr std::size_t size_of(dtype type) noexcept {
  return type == dtype::f32 || type == dtype::i32 ? 4 : 2;
}

/// True for the types that hold real numbers.
[[nodiscard]] constexpr bool is_floating(dtype type) noexcept { return type < dtype::i32; }

/// "f32", "bf16", "f16" or "i32".
[[nodiscard]] constexpr std::string_view to_string(dtype type) noexcept {
  switch (type) {
    case dtype::f32: return "f32";
    case dtype::bf16: return "bf16";
    case dtype::f16: return "f16";
    case dtype::i32: return "i32";
  }
  return "unknown";
}

/// Storage for a bfloat16 number: the upper half of an f32.
struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() noexcept = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  explicit constexpr bfloat16(float value) noexcept : bits(round(value)) {}
  [[nodiscard]] static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
    bfloat16 result;
    result.bits = bits;
    return result;
  }
  constexpr operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  }

 private:
  static constexpr std::uint16_t round(float value) noexcept {
    auto const word = std::bit_cast<std::uint32_t>(value);
    if ((word & 0x7fffffffU) > 0x7f800000U) {
      return static_cast<std::uint16_t>((word >> 16U) | 0x40U);
    }
    return static_cast<std::uint16_t>((word + 0x7fffU + ((word >> 16U) & 1U)) >> 16U);
  }
};

/// Storage for an IEEE 754 binary16 number.
struct float16 {
  std::uint16_t bits = 0;

  constexpr float16() noexcept = default;
  /// Rounds to nearest, ties to even; overflow becomes infinity, NaN stays NaN.
  explicit constexpr float16(float value) noexcept : bits(round(value)) {}
  [[nodiscard]] static constexpr float16 from_bits(std::uint16_t bits) noexcept {
    float16 result;
    result.bits = bits;
    return result;
  }
  constexpr operator float() const noexcept {
    std::uint32_t const sign = (static_cast<std::uint32_t>(bits) & 0x8000U) << 16U;
    std::uint32_t const rest = static_cast<std::uint32_t>(bits) & 0x7fffU;
    if (rest >= 0x7c00U) {  // infinity or NaN
      return std::bit_cast<float>(sign | 0x7f800000U | ((rest & 0x3ffU) << 13U));
    }
    if (rest < 0x400U) {  // zero or subnormal: a whole number of 2^-24
      float const magnitude = static_cast<float>(rest) * 0x1p-24F;
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
    }
    return std::bit_cast<float>(sign | ((rest << 13U) + 0x38000000U));
  }

 private:
  static constexpr std::uint16_t round(float value) noexcept {
    auto const word = std::bit_cast<std::uint32_t>(value);
    std::uint32_t const sign = (word >> 16U) & 0x8000U;
    std::uint32_t const magnitude = word & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
    if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
    if (magnitude < 0x38800000U) {
      // Below the smallest normal number: adding 0.5 makes the f32 addition do the rounding.
      float const shifted = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<std::uint16_t>(sign |
                                        (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
    }
    std::uint32_t const rounded = magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13U) & 1U);
    return static_cast<std::uint16_t>(sign | (rounded >> 13U));
  }
};

static_assert(sizeof(bfloat16) == 2 && sizeof(float16) == 2);

/// The dtype of a C++ element type; not defined for others.
template <class Element>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr dtype value = dtype::f32;
};
template <>
struct dtype_of<bfloat16> {
  static constexpr dtype value = dtype::bf16;
};
template <>
struct dtype_of<float16> {
  static constexpr dtype value = dtype::f16;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr dtype value = dtype::i32;
};
template <class Element>
inline constexpr dtype dtype_of_v = dtype_of<Element>::value;

}  // namespace v0
}  // namespace mambatile
