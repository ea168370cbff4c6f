#include <cstddef>
#include <cstdint>

#include "fuzz/config_fuzz.hpp"

// Entry point of libFuzzer.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  (void)mambatile::testing::exercise_config({reinterpret_cast<char const*>(data), size});
  return 0;
}
