#include <filesystem>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "fuzz/checkpoint_fuzz.hpp"
#include "fuzz/config_fuzz.hpp"
#include "models/small_checkpoint.hpp"
#include "unit/safetensors_file.hpp"

using namespace mambatile::testing;

namespace {
std::filesystem::path const corpus = MAMBATILE_TEST_DATA_DIR "/fuzz/corpus";
}

TEST_CASE("config: the corpus of the fuzzer replays", "[models]") {
  int files = 0;
  int readable = 0;
  for (auto const& entry : std::filesystem::directory_iterator(corpus / "config")) {
    INFO(entry.path());
    ++files;
    if (exercise_config(text_of(entry.path()))) ++readable;
  }
  CHECK(files >= 100);
  CHECK(readable >= 10);
}

TEST_CASE("checkpoint: the corpus of the fuzzer replays", "[models]") {
  temporary_folder const folder;
  int files = 0;
  int readable = 0;
  for (auto const& entry : std::filesystem::directory_iterator(corpus / "checkpoint")) {
    INFO(entry.path());
    ++files;
    if (exercise_checkpoint(read_bytes(entry.path()), folder.path())) ++readable;
  }
  CHECK(files >= 100);
  CHECK(readable >= 10);
}
