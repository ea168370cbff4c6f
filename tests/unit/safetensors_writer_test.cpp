#include <array>
#include <filesystem>
#include <numeric>
#include <optional>
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

std::size_t entries_in(std::filesystem::path const& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

template <class Element, std::size_t Count>
std::span<std::byte const> bytes_of(std::array<Element, Count> const& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

TEST_CASE("safetensors_writer: a number that is no type is refused", "[safetensors]") {
  auto const no_type = static_cast<safetensors_type>(99);
  CHECK_THROWS_MATCHES(bits_of(no_type), invalid_argument,
                       MessageMatches(ContainsSubstring("99 is no safetensors_type")));
  CHECK(to_string(no_type) == "unknown");
  CHECK(to_dtype(no_type) == std::nullopt);
  CHECK_THROWS_MATCHES(to_safetensors_type(static_cast<dtype>(77)), invalid_argument,
                       MessageMatches(ContainsSubstring("77 is no dtype")));
  std::array<float, 2> const values = {1, 2};
  safetensors_writer writer;
  CHECK_THROWS_AS(writer.add("x", no_type, {2}, bytes_of(values)), invalid_argument);
  auto view = make_view(values.data(), {2});
  view.type = static_cast<dtype>(77);
  CHECK_THROWS_AS(writer.add("x", view), invalid_argument);
}

TEST_CASE("safetensors_writer: what is written is read back", "[safetensors]") {
  temporary_folder const folder;
  std::array<float, 6> const values = {1, 2, 3, 4, 5, 6};
  std::array<bfloat16, 3> const halves = {bfloat16(1), bfloat16(2), bfloat16(3)};
  std::array<std::int64_t, 1> const big = {1'234'567'890'123};
  std::array<std::uint8_t, 5> const small = {9, 8, 7, 6, 5};
  safetensors_writer writer;
  writer.add("rows", make_view(values.data(), {2, 3}));
  writer.add("transposed", make_view(values.data(), {3, 2}, {1, 3}));
  writer.add("reversed", make_view(values.data() + 5, {6}, {-1}));
  writer.add("repeated", make_view(values.data(), {2, 2}, {0, 1}));
  writer.add("halves", make_view(halves.data(), {3}));
  writer.add("nothing", make_view(values.data(), {0, 4}));
  writer.add("scalar", safetensors_type::i64, {}, bytes_of(big));
  writer.add("bytes \"quoted\" \u00e9", safetensors_type::u8, {5}, bytes_of(small));
  writer.set_metadata("plan", "reference");
  writer.write(folder / "f.safetensors");
  CHECK(entries_in(folder.path()) == 1);

  safetensors_file const file(folder / "f.safetensors");
  auto const floats = [&](char const* name) {
    auto const& tensor = file.at(name);
    std::vector<float> result(static_cast<std::size_t>(tensor.size()));
    std::memcpy(result.data(), tensor.bytes.data(), tensor.bytes.size());
    return result;
  };
  CHECK(floats("rows") == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(floats("transposed") == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(file.at("transposed").shape == std::vector<std::int64_t>{3, 2});
  CHECK(floats("reversed") == std::vector<float>{6, 5, 4, 3, 2, 1});
  CHECK(floats("repeated") == std::vector<float>{1, 2, 1, 2});
  CHECK(file.at("halves").type == safetensors_type::bf16);
  CHECK(file.at("nothing").shape == std::vector<std::int64_t>{0, 4});
  CHECK(file.at("scalar").shape.empty());
  CHECK(file.at("bytes \"quoted\" \u00e9").bytes[4] == std::byte{5});
  CHECK(file.metadata().at("plan") == "reference");
  // Every tensor lies aligned to its type.
  for (auto const& tensor : file.tensors()) {
    INFO(tensor.name);
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) %
              static_cast<std::uintptr_t>(bits_of(tensor.type) / 8) ==
          0);
  }
  CHECK(reinterpret_cast<std::uintptr_t>(file.tensors()[0].bytes.data()) % 64 == 0);
}

TEST_CASE("safetensors_writer: the same contents give the same bytes", "[safetensors]") {
  temporary_folder const folder;
  std::array<float, 4> const values = {1, 2, 3, 4};
  std::array<std::uint8_t, 3> const small = {1, 2, 3};
  auto const write = [&](char const* name, bool backwards) {
    safetensors_writer writer;
    if (backwards) writer.add("b", make_view(values.data(), {4}));
    writer.add("z", safetensors_type::u8, {3}, bytes_of(small));
    writer.set_metadata(backwards ? "k2" : "k1", "v");
    writer.add("a", make_view(values.data(), {2}));
    if (!backwards) writer.add("b", make_view(values.data(), {4}));
    writer.set_metadata(backwards ? "k1" : "k2", "v");
    writer.write(folder / name);
  };
  write("one", false);
  write("two", true);
  CHECK(read_bytes(folder / "one") == read_bytes(folder / "two"));
}

TEST_CASE("safetensors_writer: a file is replaced whole or not at all", "[safetensors]") {
  temporary_folder const folder;
  std::array<float, 2> const values = {1, 2};
  safetensors_writer writer;
  writer.add("x", make_view(values.data(), {2}));
  writer.write(folder / "f");
  // A reader of the old file keeps it.
  safetensors_file const old(folder / "f");
  std::array<float, 2> const others = {3, 4};
  safetensors_writer second;
  second.add("x", make_view(others.data(), {2}));
  second.write(folder / "f");
  float kept = 0;
  std::memcpy(&kept, old.at("x").bytes.data(), 4);
  CHECK(kept == 1);
  safetensors_file const now(folder / "f");
  std::memcpy(&kept, now.at("x").bytes.data(), 4);
  CHECK(kept == 3);

  std::filesystem::create_directory(folder / "taken");
  CHECK_THROWS_MATCHES(writer.write(folder / "taken"), file_error,
                       MessageMatches(ContainsSubstring("taken: is not a regular file")));
  CHECK_THROWS_MATCHES(writer.write(folder / "absent/f"), file_error,
                       MessageMatches(ContainsSubstring("absent/f: cannot be created")));
  CHECK(entries_in(folder.path()) == 2);  // no temporary file is left
}

TEST_CASE("safetensors_writer: what cannot be stored is refused", "[safetensors]") {
  std::array<float, 2> const values = {1, 2};
  auto const view = make_view(values.data(), {2});
  safetensors_writer writer;
  auto const refused = [&](std::string name, const_tensor_view const& tensor, char const* message) {
    CHECK_THROWS_MATCHES(
        writer.add(std::move(name), tensor), invalid_argument,
        MessageMatches(ContainsSubstring("safetensors_writer: ") && ContainsSubstring(message)));
  };
  writer.add("x", view);
  refused("x", view, "tensor 'x' was added before");
  refused("__metadata__", view, "cannot be named '__metadata__'");
  refused("\xff", view, "is not UTF-8");
  refused("absent", {}, "tensor 'absent' is absent");
  refused("null", make_view(static_cast<float const*>(nullptr), {2}), "tensor 'null' is null");
  refused("far", make_view(values.data(), {2}, device{device_kind::cuda, 0}), "not on the host");
  refused("negative", make_view(values.data(), {-2}), "impossible shape (-2)");
  CHECK_THROWS_MATCHES(
      writer.add("bytes", safetensors_type::f64, {2}, bytes_of(values)), invalid_argument,
      MessageMatches(ContainsSubstring("shape (2) of F64 does not take the 8 bytes given")));
  CHECK_THROWS_MATCHES(writer.set_metadata("\xff", ""), invalid_argument,
                       MessageMatches(ContainsSubstring("is not UTF-8")));
  CHECK_THROWS_MATCHES(writer.set_metadata("k", "\xc3"), invalid_argument,
                       MessageMatches(ContainsSubstring("metadata of key 'k' is not UTF-8")));
}
