#include "convert.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include "transpose.hpp"

namespace mambatile::kokkos {
namespace {

std::uint32_t bits_of_float(float value) { return std::bit_cast<std::uint32_t>(value); }

// Around every rounding boundary of both types, and random bits.
std::vector<float> numbers_to_round() {
  std::vector<float> result;
  for (std::uint32_t half = 0; half < 0x10000U; ++half) {
    for (auto const below : {0x7fffU, 0x8000U, 0x8001U}) {
      result.push_back(std::bit_cast<float>((half << 16U) | below));
    }
    auto const number = static_cast<float>(float16::from_bits(static_cast<std::uint16_t>(half)));
    for (std::uint32_t step : {0xfffU, 0x1000U, 0x1001U}) {
      result.push_back(std::bit_cast<float>(bits_of_float(number) + step));
    }
  }
  std::mt19937 random(11);
  while (result.size() % pack_width != 0 || result.size() < 600000) {
    result.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("16-bit numbers convert bit for bit like the scalar types", "", bfloat16,
                   float16) {
  bool same = true;
  for (std::uint32_t first = 0; first < 0x10000U; first += pack_width) {
    TestType from[pack_width];
    float to[pack_width];
    for (std::uint32_t i = 0; i < pack_width; ++i) {
      from[i] = TestType::from_bits(static_cast<std::uint16_t>(first + i));
    }
    store(to, load(from));
    for (std::uint32_t i = 0; i < pack_width; ++i) {
      auto const want = static_cast<float>(from[i]);
      same = same && (want != want ? to[i] != to[i] : bits_of_float(want) == bits_of_float(to[i]));
    }
  }
  CHECK(same);

  auto const numbers = numbers_to_round();
  std::size_t differing = 0;
  for (std::size_t first = 0; first < numbers.size(); first += pack_width) {
    TestType to[pack_width];
    store(to, load(&numbers[first]));
    for (std::size_t i = 0; i < pack_width; ++i) {
      auto const want = TestType(numbers[first + i]);
      auto const wide = static_cast<float>(want);
      bool const equal = wide != wide ? static_cast<float>(to[i]) != static_cast<float>(to[i])
                                      : want.bits == to[i].bits;
      if (!equal) ++differing;
    }
  }
  CHECK(differing == 0);
}

TEMPLATE_TEST_CASE("partial loads and stores touch nothing beyond their count", "", float, bfloat16,
                   float16) {
  for (int count = 1; count < pack_width; ++count) {
    std::vector<TestType> exact(static_cast<std::size_t>(count), TestType(3.0F));
    float lanes[pack_width];
    store(lanes, load_first(exact.data(), count));
    std::array<TestType, 2 * pack_width> target;
    target.fill(TestType(7.0F));
    store_first(target.data(), pack(5.0F), count);
    for (int i = 0; i < pack_width; ++i) {
      CHECK(lanes[i] == (i < count ? 3.0F : 0.0F));
      CHECK(static_cast<float>(target[static_cast<std::size_t>(i)]) == (i < count ? 5.0F : 7.0F));
    }
  }
}

TEST_CASE("a square transposes") {
  pack rows[pack_width];
  for (int i = 0; i < pack_width; ++i) {
    rows[i] = lane_numbers() + pack(static_cast<float>(100 * i));
  }
  transpose(rows);
  for (int i = 0; i < pack_width; ++i) {
    float lanes[pack_width];
    store(lanes, rows[i]);
    for (int j = 0; j < pack_width; ++j) CHECK(lanes[j] == static_cast<float>(100 * j + i));
  }
}

}  // namespace mambatile::kokkos
