#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <mambatile/errors.hpp>
#include <mambatile/safetensors.hpp>

#include "safetensors_file.hpp"

using namespace mambatile;
using namespace mambatile::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

// A file with one tensor "t" of these values.
template <class Value, std::size_t Count>
struct one_tensor {
  one_tensor(char const* type, std::array<Value, Count> const& values)
      : bytes(safetensors_bytes("{\"t\":{\"dtype\":\"" + std::string(type) + "\",\"shape\":[" +
                                    std::to_string(Count) + "],\"data_offsets\":[0," +
                                    std::to_string(Count * sizeof(Value)) + "]}}",
                                Count * sizeof(Value))) {
    std::memcpy(bytes.data() + bytes.size() - Count * sizeof(Value), values.data(),
                Count * sizeof(Value));
  }
  [[nodiscard]] safetensors_file file() const { return safetensors_file::from_bytes(bytes, "f"); }

  template <class Element>
  [[nodiscard]] std::array<Element, Count> copied() const {
    std::array<Element, Count> result = {};
    file().copy_to("t", make_view(result.data(), {std::int64_t{Count}}));
    return result;
  }

  std::vector<std::byte> bytes;
};

}  // namespace

TEST_CASE("safetensors: floating-point types are converted with one rounding", "[safetensors]") {
  // 1 + 2^-8 + 2^-30: rounded to f32 first it would be a tie, and go down.
  std::array<double, 4> const wide = {1.0 + 0x1p-8 + 0x1p-30, -3.5, 1e300,
                                      std::numeric_limits<double>::quiet_NaN()};
  one_tensor const source("F64", wide);
  auto const as_bf16 = source.copied<bfloat16>();
  CHECK(static_cast<float>(as_bf16[0]) == 1.0F + 0x1p-7F);
  CHECK(static_cast<float>(as_bf16[1]) == -3.5F);
  CHECK(std::isinf(static_cast<float>(as_bf16[2])));
  CHECK(std::isnan(static_cast<float>(as_bf16[3])));
  auto const as_f32 = source.copied<float>();
  CHECK(as_f32[0] == static_cast<float>(wide[0]));
  CHECK(as_f32[1] == -3.5F);

  one_tensor const half("F16", std::array{float16(0.1F), float16(-0x1p-24F), float16(65504.0F)});
  auto const from_half = half.copied<float>();
  CHECK(from_half == std::array{static_cast<float>(float16(0.1F)), -0x1p-24F, 65504.0F});
  CHECK(half.copied<float16>()[1].bits == float16(-0x1p-24F).bits);
  one_tensor const brain("BF16", std::array{bfloat16(0.1F), bfloat16(1e30F)});
  CHECK(brain.copied<float>()[1] == static_cast<float>(bfloat16(1e30F)));
  CHECK(std::isinf(static_cast<float>(brain.copied<float16>()[1])));
}

TEST_CASE("safetensors: integers and booleans become i32 where they fit", "[safetensors]") {
  CHECK(one_tensor("I64", std::array<std::int64_t, 2>{-5, 2147483647}).copied<std::int32_t>() ==
        std::array{-5, 2147483647});
  CHECK(one_tensor("U16", std::array<std::uint16_t, 1>{65535}).copied<std::int32_t>()[0] == 65535);
  CHECK(one_tensor("I8", std::array<std::int8_t, 1>{-128}).copied<std::int32_t>()[0] == -128);
  CHECK(one_tensor("BOOL", std::array<std::uint8_t, 2>{0, 1}).copied<std::int32_t>() ==
        std::array{0, 1});
  CHECK_THROWS_MATCHES(
      one_tensor("I64", std::array<std::int64_t, 1>{2147483648}).copied<std::int32_t>(), file_error,
      MessageMatches(ContainsSubstring("tensor 't' holds 2147483648, which is beyond i32")));
  CHECK_THROWS_MATCHES(
      one_tensor("U32", std::array<std::uint32_t, 1>{4294967295U}).copied<std::int32_t>(),
      file_error, MessageMatches(ContainsSubstring("holds 4294967295, which is beyond i32")));
}

TEST_CASE("safetensors: conversions that would lose meaning are refused", "[safetensors]") {
  auto const refused = [](auto const& source, auto element, char const* message) {
    CHECK_THROWS_MATCHES(source.template copied<decltype(element)>(), file_error,
                         MessageMatches(ContainsSubstring(message)));
  };
  refused(one_tensor("I32", std::array<std::int32_t, 1>{1}), float{},
          "tensor 't' has type I32, which is not read as f32");
  refused(one_tensor("F32", std::array<float, 1>{1}), std::int32_t{},
          "tensor 't' has type F32, which is not read as i32");
  refused(one_tensor("F8_E4M3", std::array<std::uint8_t, 1>{1}), float{},
          "tensor 't' has type F8_E4M3, which is not read as f32");
  refused(one_tensor("C64", std::array<double, 1>{1}), float{},
          "tensor 't' has type C64, which is not read as f32");
}

TEST_CASE("safetensors: copies go into strided memory and nowhere else", "[safetensors]") {
  // (2, 3) into a transposed view with room between its elements.
  auto bytes =
      safetensors_bytes(R"({"t":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24);
  std::array<float, 6> const values = {1, 2, 3, 4, 5, 6};
  std::memcpy(bytes.data() + bytes.size() - 24, values.data(), 24);
  auto const file = safetensors_file::from_bytes(bytes, "f");
  std::array<float, 14> target;
  target.fill(-1);
  file.copy_to("t", make_view(target.data() + 1, {2, 3}, {2, 4}));
  CHECK(target == std::array<float, 14>{-1, 1, -1, 4, -1, 2, -1, 5, -1, 3, -1, 6, -1, -1});

  CHECK_THROWS_MATCHES(
      file.copy_to("t", make_view(target.data(), {3, 2})), file_error,
      MessageMatches(ContainsSubstring("tensor 't' has shape (2, 3), but (3, 2) was expected")));
  CHECK_THROWS_MATCHES(file.copy_to("t", make_view(target.data(), {6})), file_error,
                       MessageMatches(ContainsSubstring("but (6) was expected")));
  CHECK_THROWS_MATCHES(file.copy_to("t", make_view(static_cast<float*>(nullptr), {2, 3})),
                       invalid_argument, MessageMatches(ContainsSubstring("is null")));
  CHECK_THROWS_MATCHES(
      file.copy_to("t", make_view(target.data(), {2, 3}, device{device_kind::cuda, 0})),
      invalid_argument, MessageMatches(ContainsSubstring("not on the host")));
}
