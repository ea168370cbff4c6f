#pragma once

#include <string_view>

#include <mambatile/export.hpp>

/// @file
/// Version of these headers (macros; the build reads them too) and of the library linked
/// (function).

#define MAMBATILE_VERSION_MAJOR 0
#define MAMBATILE_VERSION_MINOR 1
#define MAMBATILE_VERSION_PATCH 0

namespace mambatile {
inline namespace v0 {

/// Version of the library that is linked, as "major.minor.patch".
[[nodiscard]] MAMBATILE_EXPORT std::string_view version() noexcept;

}  // namespace v0
}  // namespace mambatile
