#pragma once

#include <string_view>

namespace mambatile::testing {

/// Reads any text as a config.json: it is refused with a file_error, or all its sizes can be used
/// without overflow. True where it was readable; anything else aborts.
bool exercise_config(std::string_view text);

}  // namespace mambatile::testing
