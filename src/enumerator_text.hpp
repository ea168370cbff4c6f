#pragma once

#include <string>

#include <fmt/format.h>

namespace mambatile {
inline namespace v0 {
namespace detail {

/// The enumerator's name, or the number where it has none.
template <class Enum>
[[nodiscard]] std::string enumerator_text(Enum value) {
  std::string name(to_string(value));
  return name == "unknown" ? fmt::format("{}", static_cast<int>(value)) : name;
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
