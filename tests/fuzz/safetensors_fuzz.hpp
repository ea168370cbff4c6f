#pragma once

#include <cstddef>
#include <span>

namespace mambatile::testing {

/// Reads the bytes as a safetensors file and touches everything in it. True where they are one.
/// Aborts where the reader contradicts itself.
bool exercise_safetensors(std::span<std::byte const> bytes);

}  // namespace mambatile::testing
