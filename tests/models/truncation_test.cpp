#include <cstdint>
#include <filesystem>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/checkpoint.hpp>
#include <mambatile/errors.hpp>

#include "models/small_checkpoint.hpp"
#include "unit/safetensors_file.hpp"

// A checkpoint that was cut short anywhere is refused with a file_error, and with nothing else.

using namespace mambatile;
using namespace mambatile::testing;

namespace {

bool is_refused(std::filesystem::path const& folder) {
  return !file_error_of([&] { (void)checkpoint::open(folder); }).empty();
}

// Cuts `file` to every length below `dense`, and to every `step`-th beyond; counts what opened all
// the same.
int opened_when_cut(std::filesystem::path const& folder, std::string const& file,
                    std::uintmax_t dense, std::uintmax_t step) {
  int opened = 0;
  auto const path = folder / file;
  for (auto length = std::filesystem::file_size(path); length-- > 0;) {
    if (length >= dense && length % step != 0) continue;
    std::filesystem::resize_file(path, length);
    if (!is_refused(folder)) ++opened;
  }
  return opened;
}

}  // namespace

TEST_CASE("checkpoint: cut short at any byte it is refused", "[models]") {
  temporary_folder const folder;
  evaluation::write_random_checkpoint(folder.path(), small_shape);
  REQUIRE(!is_refused(folder.path()));
  safetensors_file const whole(folder / "model.safetensors");
  auto const bytes = std::filesystem::file_size(folder / "model.safetensors");
  auto data_bytes = std::uintmax_t{0};
  for (auto const& tensor : whole.tensors()) data_bytes += tensor.bytes.size();
  // Every byte of the header and of some data behind it; then samples, and the last byte.
  CHECK(opened_when_cut(folder.path(), "model.safetensors", bytes - data_bytes + 64, 13) == 0);

  evaluation::write_random_checkpoint(folder.path(), small_shape);
  std::filesystem::resize_file(folder / "model.safetensors", bytes - 1);
  CHECK(is_refused(folder.path()));

  // The last byte of the configuration is the end of its last line, and no part of it.
  evaluation::write_random_checkpoint(folder.path(), small_shape);
  auto const text_bytes = std::filesystem::file_size(folder / "config.json");
  CHECK(opened_when_cut(folder.path(), "config.json", text_bytes, 1) == 1);
}

TEST_CASE("checkpoint: an index or a shard cut short is refused", "[models]") {
  temporary_folder const folder;
  auto const make = [&] {
    evaluation::write_random_checkpoint(folder.path(), small_shape, {.shard_bytes = 3000});
  };
  make();
  REQUIRE(!is_refused(folder.path()));
  std::string const index = "model.safetensors.index.json";
  auto const text_bytes = std::filesystem::file_size(folder / index);
  CHECK(opened_when_cut(folder.path(), index, text_bytes, 1) == 1);
  make();
  std::filesystem::path shard;
  for (auto const& entry : std::filesystem::directory_iterator(folder.path())) {
    auto const name = entry.path().filename().string();
    if (name.starts_with("model-00002")) shard = entry.path().filename();
  }
  REQUIRE(!shard.empty());
  CHECK(opened_when_cut(folder.path(), shard.string(), 600, 97) == 0);
}
