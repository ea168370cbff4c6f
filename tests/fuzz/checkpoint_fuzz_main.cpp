#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "fuzz/checkpoint_fuzz.hpp"

// Entry point of libFuzzer. Files go to memory where the system has /dev/shm.
namespace {

std::filesystem::path const& folder() {
  static auto const path = [] {
    auto const parent = std::filesystem::exists("/dev/shm")
                            ? std::filesystem::path("/dev/shm")
                            : std::filesystem::temp_directory_path();
    auto made = parent / ("mambatile-fuzz-" + std::to_string(::getpid()));
    std::filesystem::create_directories(made);
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(folder(), ignored);
    });
    return made;
  }();
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  (void)mambatile::testing::exercise_checkpoint({reinterpret_cast<std::byte const*>(data), size},
                                                folder());
  return 0;
}
