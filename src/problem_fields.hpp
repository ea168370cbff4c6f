#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "enumerator_text.hpp"

// Printing and hashing of problems from one list of their fields.

namespace mambatile {
inline namespace v0 {
namespace detail {

template <class Field>
std::string field_string(Field const& value) {
  if constexpr (std::is_enum_v<Field>) {
    return enumerator_text(value);
  } else {
    return fmt::format("{}", value);
  }
}

/// "operator(field = value, ...)" with the fields that differ from a default-made problem.
/// `for_each_field(problem, visit)` calls visit(name, value) for each field.
template <class Problem, class ForEachField>
std::string problem_string(Problem const& problem, ForEachField const& for_each_field) {
  std::vector<std::string> defaults;
  for_each_field(Problem{}, [&](std::string_view /*name*/, auto const& value) {
    defaults.push_back(field_string(value));
  });
  std::string text;
  std::size_t index = 0;
  for_each_field(problem, [&](std::string_view name, auto const& value) {
    auto const shown = field_string(value);
    if (shown != defaults[index++]) {
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, shown);
    }
  });
  return fmt::format("{}({})", Problem::operator_name, text);
}

/// Hash over all fields; `visit_fields(visit)` calls visit(name, value) for each.
template <class VisitFields>
std::size_t problem_hash(VisitFields const& visit_fields) noexcept {
  std::size_t seed = 0;
  visit_fields([&](std::string_view /*name*/, auto const& value) {
    auto const next = std::hash<std::remove_cvref_t<decltype(value)>>{}(value);
    seed ^= next + 0x9e3779b97f4a7c15U + (seed << 6U) + (seed >> 2U);
  });
  return seed;
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
