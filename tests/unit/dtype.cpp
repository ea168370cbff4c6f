#include <mambatile/dtype.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include "rounding.hpp"
#include "support/random_numbers.hpp"

namespace mambatile::testing {
namespace {

TEST_CASE("dtype: sizes and names", "[unit]") {
  CHECK(size_of(dtype::f32) == 4);
  CHECK(size_of(dtype::i32) == 4);
  CHECK(size_of(dtype::bf16) == 2);
  CHECK(size_of(dtype::f16) == 2);
  CHECK(to_string(dtype::f32) == "f32");
  CHECK(to_string(dtype::bf16) == "bf16");
  CHECK(to_string(dtype::f16) == "f16");
  CHECK(to_string(dtype::i32) == "i32");
  CHECK(is_floating(dtype::f16));
  CHECK_FALSE(is_floating(dtype::i32));
  STATIC_CHECK(dtype_of_v<float> == dtype::f32);
  STATIC_CHECK(dtype_of_v<bfloat16> == dtype::bf16);
  STATIC_CHECK(dtype_of_v<float16> == dtype::f16);
  STATIC_CHECK(dtype_of_v<std::int32_t> == dtype::i32);
}

// The value of a 16-bit number by its definition: sign, exponent and fraction.
template <class Element>
double defined_value(std::uint16_t bits) {
  constexpr bool is_half = std::is_same_v<Element, float16>;
  constexpr int fraction_bits = is_half ? 10 : 7;
  constexpr int bias = is_half ? 15 : 127;
  constexpr int top = is_half ? 31 : 255;
  int const exponent = bits >> fraction_bits & top;
  int const fraction = bits & ((1 << fraction_bits) - 1);
  double const sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == top) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  double const significand = exponent == 0 ? std::ldexp(fraction, -fraction_bits)
                                           : 1.0 + std::ldexp(fraction, -fraction_bits);
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias);
}

TEMPLATE_TEST_CASE("dtype: every 16-bit number to f32 and back", "[unit]", bfloat16, float16) {
  std::uint32_t wrong_values = 0;
  std::uint32_t wrong_bits = 0;
  for (std::uint32_t word = 0; word <= 0xffff; ++word) {
    auto const bits = static_cast<std::uint16_t>(word);
    auto const element = TestType::from_bits(bits);
    float const value = element;
    double const expected = defined_value<TestType>(bits);
    if (std::isnan(expected)) {
      wrong_values += std::isnan(value) ? 0U : 1U;
      wrong_bits += std::isnan(static_cast<float>(TestType(value))) ? 0U : 1U;
      continue;
    }
    bool const same_sign = std::signbit(value) == std::signbit(expected);
    if (static_cast<double>(value) != expected || !same_sign) ++wrong_values;
    if (TestType(value).bits != bits) ++wrong_bits;
  }
  CHECK(wrong_values == 0);
  CHECK(wrong_bits == 0);
}

// Neighbours that are both finite and of one sign, and the numbers between them.
TEMPLATE_TEST_CASE("dtype: rounding is to nearest, ties to even", "[unit]", bfloat16, float16) {
  std::uint16_t const infinity = TestType(std::numeric_limits<float>::infinity()).bits;
  std::uint32_t wrong = 0;
  for (std::uint16_t low = 0; low + 1 < infinity; ++low) {
    auto const high = static_cast<std::uint16_t>(low + 1);
    float const below = TestType::from_bits(low);
    float const above = TestType::from_bits(high);
    // Exact in f32, except between the smallest bf16 numbers, which are f32's own subnormals.
    float const middle = below + (above - below) / 2;
    auto const even = low % 2 == 0 ? low : high;
    for (float const sign : {1.0F, -1.0F}) {
      std::uint16_t const sign_bit = sign < 0 ? 0x8000 : 0;
      auto const rounds_to = [&](float value, std::uint16_t bits) {
        return TestType(sign * value).bits == (bits | sign_bit);
      };
      wrong += rounds_to(middle, even) ? 0U : 1U;
      wrong += rounds_to(std::nextafter(middle, below), low) ? 0U : 1U;
      wrong += rounds_to(std::nextafter(middle, above), high) ? 0U : 1U;
      wrong += rounds_to(std::nextafter(above, below), high) ? 0U : 1U;
      wrong += rounds_to(std::nextafter(below, above), low) ? 0U : 1U;
    }
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("dtype: what is too large becomes infinity, NaN stays NaN", "[unit]", bfloat16,
                   float16) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  auto const top = TestType(infinity);
  CHECK(static_cast<float>(top) == infinity);
  auto const largest =
      static_cast<float>(TestType::from_bits(static_cast<std::uint16_t>(top.bits - 1)));
  float const step =
      largest - static_cast<float>(TestType::from_bits(static_cast<std::uint16_t>(top.bits - 2)));
  // Half a step beyond the largest number is a tie that goes to the even one, infinity.
  CHECK(TestType(largest + step / 2).bits == top.bits);
  CHECK(TestType(std::nextafter(largest + step / 2, 0.0F)).bits == top.bits - 1);
  CHECK(TestType(-infinity).bits == (top.bits | 0x8000));
  CHECK(TestType(-std::numeric_limits<float>::max()).bits == (top.bits | 0x8000));
  // Signalling ones, and those whose payload lies in the bits that are cut off, included.
  for (std::uint32_t const payload : {0x7fc00000U, 0x7f800001U, 0x7f80ffffU, 0xffffffffU}) {
    CHECK(std::isnan(static_cast<float>(TestType(std::bit_cast<float>(payload)))));
  }
  CHECK(TestType(0.0F).bits == 0);
  CHECK(TestType(-0.0F).bits == 0x8000);
}

TEMPLATE_TEST_CASE("dtype: f64 is rounded once", "[unit]", bfloat16, float16) {
  using detail::round_to;
  // A tie of the 16-bit type, and an f64 number beside it that is the tie in f32.
  float const one = 1.0F;
  auto const next = TestType::from_bits(static_cast<std::uint16_t>(TestType(one).bits + 1));
  double const tie = (1.0 + static_cast<double>(static_cast<float>(next))) / 2;
  CHECK(round_to<TestType>(tie).bits == TestType(one).bits);
  CHECK(round_to<TestType>(std::nextafter(tie, 2.0)).bits == next.bits);
  CHECK(round_to<TestType>(std::nextafter(tie, 0.0)).bits == TestType(one).bits);
  CHECK(round_to<TestType>(1e300).bits == TestType(std::numeric_limits<float>::infinity()).bits);
  CHECK(
      std::isnan(static_cast<float>(round_to<TestType>(std::numeric_limits<double>::quiet_NaN()))));
  // Numbers that f32 holds round as f32 does.
  random_numbers numbers(7);
  for (int i = 0; i < 10000; ++i) {
    auto const value = static_cast<float>(numbers.normal() * std::exp(numbers.uniform(-20, 11)));
    CHECK(round_to<TestType>(static_cast<double>(value)).bits == TestType(value).bits);
  }
}

}  // namespace
}  // namespace mambatile::testing
