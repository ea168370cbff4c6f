#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace mambatile::testing {

/// Writes a directory from any bytes and opens it as a checkpoint: it is refused with a file_error,
/// or every weight can be read throughout. The bytes are a list of files, each a byte that says
/// which (of config.json, model.safetensors, the index, two shards), two bytes of length, lowest
/// first, and the contents; the last file has what is left. True where it opened.
bool exercise_checkpoint(std::span<std::byte const> bytes, std::filesystem::path const& folder);

}  // namespace mambatile::testing
