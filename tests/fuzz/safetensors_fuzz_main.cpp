#include <cstddef>
#include <cstdint>

#include "fuzz/safetensors_fuzz.hpp"

// Entry point of libFuzzer.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  (void)mambatile::testing::exercise_safetensors({reinterpret_cast<std::byte const*>(data), size});
  return 0;
}
