#include <array>
#include <filesystem>
#include <limits>
#include <string>

#include <sys/stat.h>

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

safetensors_file parse(std::vector<std::byte> const& bytes) {
  return safetensors_file::from_bytes(bytes, "f.safetensors");
}

struct refusal {
  char const* what;
  std::string header;
  std::size_t data_bytes;
  char const* message;
};

std::string entry(std::string const& name, std::string const& type, std::string const& shape,
                  std::string const& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

std::string object(std::string const& first, std::string const& second = "") {
  return "{" + first + (second.empty() ? "" : "," + second) + "}";
}

}  // namespace

TEST_CASE("safetensors: a well-formed file is read", "[safetensors]") {
  auto const bytes = safetensors_bytes(
      object("\"__metadata__\":{\"kind\":\"ssd\"}",
             entry("b", "F32", "[1,2]", "[6,14]") + "," + entry("a", "I16", "[3]", "[0,6]")) +
          "   ",
      14);
  auto const file = parse(bytes);
  CHECK(file.name() == "f.safetensors");
  REQUIRE(file.tensors().size() == 2);
  CHECK(file.tensors()[0].name == "a");  // in the order of their data
  CHECK(file.tensors()[1].name == "b");
  CHECK(file.at("a").type == safetensors_type::i16);
  CHECK(file.at("a").shape == std::vector<std::int64_t>{3});
  CHECK(file.at("a").bytes.size() == 6);
  CHECK(file.at("b").size() == 2);
  CHECK(file.at("b").bytes.data() == file.at("a").bytes.data() + 6);
  CHECK(file.find("c") == nullptr);
  CHECK(file.metadata().at("kind") == "ssd");
  CHECK_THROWS_MATCHES(file.at("c"), file_error,
                       MessageMatches(ContainsSubstring("f.safetensors: has no tensor 'c'")));
}

TEST_CASE("safetensors: empty tensors, scalars, and files without tensors", "[safetensors]") {
  CHECK(parse(safetensors_bytes("{}", 0)).tensors().empty());
  auto const bytes = safetensors_bytes(
      object(entry("full", "F32", "[]", "[0,4]") + "," + entry("none", "F32", "[0,7]", "[0,0]"),
             entry("end", "U8", "[3,0]", "[4,4]")),
      4);
  auto const file = parse(bytes);
  CHECK(file.tensors().size() == 3);
  CHECK(file.at("full").size() == 1);
  CHECK(file.at("none").size() == 0);
  CHECK(file.at("none").shape == std::vector<std::int64_t>{0, 7});
}

TEST_CASE("safetensors: every known type has its size", "[safetensors]") {
  struct row {
    char const* name;
    int bits;
  };
  for (auto const& [name, bits] :
       {row{"BOOL", 8},    row{"F4", 4},          row{"F6_E2M3", 6},     row{"F6_E3M2", 6},
        row{"U8", 8},      row{"I8", 8},          row{"F8_E5M2", 8},     row{"F8_E4M3", 8},
        row{"F8_E8M0", 8}, row{"F8_E4M3FNUZ", 8}, row{"F8_E5M2FNUZ", 8}, row{"I16", 16},
        row{"U16", 16},    row{"F16", 16},        row{"BF16", 16},       row{"I32", 32},
        row{"U32", 32},    row{"F32", 32},        row{"C64", 64},        row{"F64", 64},
        row{"I64", 64},    row{"U64", 64}}) {
    INFO(name);
    auto const size = std::to_string(bits);  // 8 elements
    auto const bytes = safetensors_bytes(object(entry("t", name, "[8]", "[0," + size + "]")),
                                         static_cast<std::size_t>(bits));
    auto const file = parse(bytes);
    CHECK(to_string(file.at("t").type) == name);
    CHECK(bits_of(file.at("t").type) == bits);
  }
}

TEST_CASE("safetensors: every kind of damage is refused by name", "[safetensors]") {
  auto const ok = entry("x", "F32", "[2]", "[0,8]");
  std::array const refusals = {
      refusal{"gap before", object(entry("x", "F32", "[2]", "[4,12]")), 12,
              "data bytes 0 to 4, before tensor 'x', belong to no tensor"},
      refusal{"gap between", object(ok, entry("y", "F32", "[1]", "[12,16]")), 16,
              "data bytes 8 to 12, before tensor 'y', belong to no tensor"},
      refusal{"bytes at the end", object(ok), 11,
              "data bytes 8 to 11, at the end of the file, belong to no tensor"},
      refusal{"overlap", object(ok, entry("y", "F32", "[2]", "[4,12]")), 12,
              "tensor 'y' begins at data byte 4 and overlaps tensor 'x', which ends at 8"},
      refusal{"the same bytes twice", object(ok, entry("y", "F32", "[2]", "[0,8]")), 8,
              "tensor 'y' begins at data byte 0 and overlaps tensor 'x'"},
      refusal{"truncated data", object(ok), 7,
              "tensor 'x': data_offsets [0, 8] end beyond the file's 7 bytes"},
      refusal{"offsets backwards", object(entry("x", "F32", "[2]", "[8,0]")), 8,
              "tensor 'x': data_offsets [8, 0] are not in order"},
      refusal{"offset beyond 2^63", object(entry("x", "U8", "[1]", "[0,18446744073709551615]")), 1,
              "tensor 'x': data_offsets holds a number beyond 2^63 - 1"},
      refusal{"offset beyond 2^64", object(entry("x", "U8", "[1]", "[0,99999999999999999999]")), 1,
              "tensor 'x': data_offsets holds a number that is no 64-bit integer"},
      refusal{"three offsets", object(entry("x", "U8", "[1]", "[0,1,2]")), 1,
              "tensor 'x': data_offsets has 3 entries, not 2"},
      refusal{"one offset", object(entry("x", "U8", "[1]", "[0]")), 1,
              "tensor 'x': data_offsets has 1 entries, not 2"},
      refusal{"no offset", object(entry("x", "U8", "[1]", "[]")), 1,
              "tensor 'x': data_offsets has 0 entries, not 2"},
      refusal{"shape and bytes differ", object(entry("x", "F32", "[3]", "[0,8]")), 8,
              "data_offsets [0, 8] hold 8 bytes, but shape (3) of F32 takes 12"},
      refusal{"unknown type", object(entry("x", "F128", "[1]", "[0,16]")), 16,
              "tensor 'x': dtype is 'F128', which is no known type"},
      refusal{"sizes overflow", object(entry("x", "F32", "[4294967296,4294967296]", "[0,0]")), 0,
              "shape (4294967296, 4294967296) of F32 is no whole number of bytes"},
      refusal{"sizes overflow to what the offsets say",
              object(entry("x", "U8", "[4294967296,4294967296]", "[0,0]")), 0,
              "is no whole number of bytes below 2^60"},
      refusal{"sizes of an empty tensor overflow",
              object(entry("x", "U8", "[0,4294967296,4294967296]", "[0,0]")), 0,
              "is no whole number of bytes below 2^60"},
      refusal{"half a byte", object(entry("x", "F4", "[3]", "[0,1]")), 1,
              "shape (3) of F4 is no whole number of bytes"},
      refusal{"negative extent", object(entry("x", "F32", "[-1]", "[0,4]")), 4,
              "tensor 'x': shape holds a negative number"},
      refusal{"fractional extent", object(entry("x", "F32", "[1.0]", "[0,4]")), 4,
              "tensor 'x': shape holds a number that is no 64-bit integer"},
      refusal{"text in a shape", object(entry("x", "F32", "[\"1\"]", "[0,4]")), 4,
              "tensor 'x': shape holds a string"},
      refusal{"shape in a shape", object(entry("x", "F32", "[[1]]", "[0,4]")), 4,
              "tensor 'x': shape holds an array"},
      refusal{"too many axes",
              object(entry("x", "U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]")), 1,
              "tensor 'x': shape has more than 16 entries"},
      refusal{"shape is a number", object(entry("x", "F32", "1", "[0,4]")), 4,
              "tensor 'x': shape is a number, not an array of integers"},
      refusal{"shape is an object", object(entry("x", "F32", "{}", "[0,4]")), 4,
              "tensor 'x': shape is an object, not an array of integers"},
      refusal{"dtype is null", R"({"x":{"dtype":null,"shape":[1],"data_offsets":[0,4]}})", 4,
              "tensor 'x': dtype is null, not a string"},
      refusal{"dtype is an array", R"({"x":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}})", 4,
              "tensor 'x': dtype is an array, not a string"},
      refusal{"no dtype", R"({"x":{"shape":[1],"data_offsets":[0,4]}})", 4,
              "tensor 'x' has no dtype"},
      refusal{"no shape", R"({"x":{"dtype":"F32","data_offsets":[0,4]}})", 4,
              "tensor 'x' has no shape"},
      refusal{"no data_offsets", R"({"x":{"dtype":"F32","shape":[1]}})", 4,
              "tensor 'x' has no data_offsets"},
      refusal{"unknown key", R"({"x":{"dtype":"F32","strides":[1]}})", 4,
              "tensor 'x': unknown key 'strides'"},
      refusal{"key twice", R"({"x":{"dtype":"F32","dtype":"F16"}})", 4,
              "tensor 'x': dtype appears twice"},
      refusal{"name twice", object(ok, entry("x", "F32", "[1]", "[8,12]")), 12,
              "tensor 'x' appears twice"},
      refusal{"name twice, once escaped", object(ok, entry("\\u0078", "F32", "[1]", "[8,12]")), 12,
              "tensor 'x' appears twice"},
      refusal{"tensor is a number", R"({"x":7})", 0, "tensor 'x' is a number, not an object"},
      refusal{"tensor is a boolean", R"({"x":true})", 0, "tensor 'x' is a boolean, not an object"},
      refusal{"metadata is an array", R"({"__metadata__":[]})", 0,
              "__metadata__ is an array, not an object"},
      refusal{"metadata holds a number", R"({"__metadata__":{"seed":1}})", 0,
              "__metadata__: 'seed' is a number, not a string"},
      refusal{"metadata holds an object", R"({"__metadata__":{"dims":{}}})", 0,
              "__metadata__: 'dims' is an object, not a string"},
      refusal{"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0,
              "__metadata__ appears twice"},
      refusal{"metadata key twice", R"({"__metadata__":{"a":"1","a":"1"}})", 0,
              "__metadata__: key 'a' appears twice"},
      refusal{"not JSON", R"({"x":})", 0, "byte 14: header is not valid JSON"},
      refusal{"JSON goes on", "{}{}", 0, "header is not valid JSON"},
      refusal{"JSON ends early", "{\"x\":{", 0, "header is not valid JSON"},
      refusal{"not UTF-8", "{\"\xff\":{}}", 0, "header is not valid JSON"},
      refusal{"a comment", "{/* */}", 0, "header is not valid JSON"},
      refusal{"NUL", std::string("{}\0{}", 5), 0, "byte 10: header holds a NUL character"},
      refusal{"an array", "[]", 0, "byte 8: header does not start with '{'"},
      refusal{"nothing", "", 0, "byte 8: header does not start with '{'"},
      refusal{"white space first", " {}", 0, "byte 8: header does not start with '{'"},
      refusal{"deep nesting", object("\"x\":{\"shape\":" + std::string(100'000, '[')), 0,
              "tensor 'x': shape holds an array"},
  };
  for (auto const& [what, header, data_bytes, message] : refusals) {
    INFO(what);
    CHECK_THROWS_MATCHES(
        parse(safetensors_bytes(header, data_bytes)), file_error,
        MessageMatches(ContainsSubstring("f.safetensors: ") && ContainsSubstring(message)));
  }
}

TEST_CASE("safetensors: header lengths beyond the file are refused", "[safetensors]") {
  auto const good = safetensors_bytes("{}", 0);
  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO(size << " bytes");
    CHECK_THROWS_MATCHES(parse({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}),
                         file_error, MessageMatches(ContainsSubstring("file is truncated")));
  }
  auto bytes = good;
  bytes[0] = std::byte{3};
  CHECK_THROWS_MATCHES(
      parse(bytes), file_error,
      MessageMatches(ContainsSubstring("the header ends at byte 11, but the file has 10 bytes")));
  for (std::size_t index = 0; index < 8; ++index) bytes[index] = std::byte{0xff};
  CHECK_THROWS_MATCHES(
      parse(bytes), file_error,
      MessageMatches(ContainsSubstring("byte 0: header length 18446744073709551615 is beyond")));
}

TEST_CASE("safetensors: hostile names cannot disturb a message", "[safetensors]") {
  auto const message_of = [](std::string const& name) {
    try {
      (void)parse(safetensors_bytes(object(entry(name, "F32", "[1]", "[0,8]")), 8));
    } catch (file_error const& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  CHECK_THAT(message_of("a\\u001b[2J\\n"), ContainsSubstring("tensor 'a\\x1b[2J\\x0a'"));
  CHECK_THAT(message_of(std::string(1000, 'n')),
             ContainsSubstring("'" + std::string(80, 'n') + "...'"));
  // A long name is not cut inside a character.
  CHECK_THAT(message_of(std::string(79, 'n') + "\u00e9\u00e9"),
             ContainsSubstring("'" + std::string(79, 'n') + "...'"));
}

TEST_CASE("safetensors: data at an odd offset loads right", "[safetensors]") {
  auto const bytes = safetensors_bytes(
      object(entry("a", "U8", "[1]", "[0,1]"), entry("b", "F32", "[2]", "[1,9]")), 9);
  auto const file = parse(bytes);
  // Either the header's length or the byte before makes one of two places odd.
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  auto const other =
      safetensors_file::from_bytes(std::span(shifted).subspan(1), "shifted.safetensors");
  std::array<float, 2> expected = {};
  std::memcpy(expected.data(), file.at("b").bytes.data(), 8);
  int refused = 0;
  for (auto const& each : {file, other}) {
    std::array<float, 2> values = {};
    each.copy_to("b", make_view(values.data(), {2}));
    CHECK(values == expected);
    auto const address = reinterpret_cast<std::uintptr_t>(each.at("b").bytes.data());
    if (address % 4 == 0) {
      CHECK(each.view("b").data == each.at("b").bytes.data());
    } else {
      ++refused;
      CHECK_THROWS_MATCHES(
          each.view("b"), file_error,
          MessageMatches(ContainsSubstring("tensor 'b' lies at an address that is no multiple")));
    }
  }
  CHECK(refused >= 1);
}

TEST_CASE("safetensors: views refuse what they cannot show", "[safetensors]") {
  auto const bytes = safetensors_bytes(
      object(entry("wide", "F64", "[1]", "[0,8]"), entry("deep", "F32", "[1,1,1,1,1,1]", "[8,12]")),
      12);
  auto const file = parse(bytes);
  CHECK_THROWS_MATCHES(file.view("wide"), file_error,
                       MessageMatches(ContainsSubstring("tensor 'wide' has type F64")));
  CHECK_THROWS_MATCHES(file.view("deep"), file_error,
                       MessageMatches(ContainsSubstring("at most 5 axes")));
}

TEST_CASE("safetensors: files that are none are refused", "[safetensors]") {
  temporary_folder const folder;
  auto const refuse = [](std::filesystem::path const& path, std::string const& message) {
    CHECK_THROWS_MATCHES(
        safetensors_file(path), file_error,
        MessageMatches(ContainsSubstring(path.string() + ": ") && ContainsSubstring(message)));
  };
  refuse(folder / "absent", "cannot be opened");
  refuse(folder.path(), "is not a regular file");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  refuse(folder / "pipe", "is not a regular file");
  write_bytes(folder / "empty", {});
  refuse(folder / "empty", "file is truncated: it has 0 bytes");
}

TEST_CASE("safetensors: copies of a file share one mapping", "[safetensors]") {
  temporary_folder const folder;
  write_bytes(folder / "f", safetensors_bytes(object(entry("x", "U8", "[3]", "[0,3]")), 3));
  auto first = std::make_unique<safetensors_file>(folder / "f");
  auto const second = *first;
  CHECK(second.at("x").bytes.data() == first->at("x").bytes.data());
  first.reset();
  std::filesystem::remove(folder / "f");
  CHECK(second.at("x").bytes[2] == std::byte{2});
}
