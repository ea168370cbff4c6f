#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// config.json as the field writes it: JSON, but for bare Infinity.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// Parses an object; duplicate keys, bare NaN and deep nesting are refused, bare Infinity becomes
/// the string "Infinity". Throws file_error beginning with `name`.
[[nodiscard]] nlohmann::json parse_config_json(std::string_view text, std::string const& name);

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
