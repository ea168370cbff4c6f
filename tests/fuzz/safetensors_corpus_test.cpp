#include <algorithm>
#include <filesystem>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "fuzz/safetensors_fuzz.hpp"
#include "unit/safetensors_file.hpp"

using namespace mambatile::testing;

TEST_CASE("safetensors: the corpus of the fuzzer replays", "[safetensors]") {
  std::filesystem::path const corpus = MAMBATILE_TEST_DATA_DIR "/fuzz/corpus/safetensors";
  int files = 0;
  int readable = 0;
  for (auto const& entry : std::filesystem::directory_iterator(corpus)) {
    INFO(entry.path());
    auto const bytes = read_bytes(entry.path());
    ++files;
    if (exercise_safetensors(bytes)) ++readable;
    // A copy at an odd address is the same file.
    std::vector<std::byte> shifted(bytes.size() + 1);
    std::ranges::copy(bytes, shifted.begin() + 1);
    (void)exercise_safetensors(std::span(shifted).subspan(1));
  }
  CHECK(files >= 100);
  CHECK(readable >= 10);
}
