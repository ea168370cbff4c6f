#include "model/config_json.hpp"

#include <cctype>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <mambatile/errors.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

// A configuration is flat; the limit keeps hostile text from exhausting the stack.
constexpr int deepest_nesting = 32;

bool is_word(char letter) noexcept {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// Puts quotes around Infinity and -Infinity where they stand as bare words outside strings.
std::string quote_infinities(std::string_view text, std::string const& name) {
  std::string result;
  result.reserve(text.size() + 16);
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    char const letter = text[i];
    if (in_string) {
      result += letter;
      if (letter == '\\' && i + 1 < text.size()) result += text[++i];
      if (letter == '"') in_string = false;
      ++i;
      continue;
    }
    if (letter == '"') in_string = true;
    bool const signed_word = letter == '-' && i + 1 < text.size() && text[i + 1] == 'I';
    if (!in_string && (is_word(letter) || signed_word)) {
      std::size_t end = i + 1;
      while (end < text.size() && is_word(text[end])) ++end;
      auto const word = text.substr(i, end - i);
      if (word == "NaN") {
        throw file_error(fmt::format("{}: byte {}: NaN is not a usable value", name, i));
      }
      bool const infinite = word == "Infinity" || word == "-Infinity";
      if (infinite) result += '"';
      result += word;
      if (infinite) result += '"';
      i = end;
      continue;
    }
    result += letter;
    ++i;
  }
  return result;
}

}  // namespace

nlohmann::json parse_config_json(std::string_view text, std::string const& name) {
  auto const strict = quote_infinities(text, name);
  std::vector<std::set<std::string>> keys_of_open_objects;
  auto const watch = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using parse_event = nlohmann::json::parse_event_t;
    if (depth > deepest_nesting) {
      throw file_error(fmt::format("{}: nested more than {} deep", name, deepest_nesting));
    }
    if (event == parse_event::object_start) keys_of_open_objects.emplace_back();
    if (event == parse_event::object_end) keys_of_open_objects.pop_back();
    if (event == parse_event::key) {
      auto const key = parsed.get<std::string>();
      if (!keys_of_open_objects.back().insert(key).second) {
        throw file_error(fmt::format("{}: the key \"{}\" appears twice", name, key));
      }
    }
    return true;
  };
  nlohmann::json parsed;
  try {
    parsed = nlohmann::json::parse(strict, watch);
  } catch (nlohmann::json::exception const& problem) {
    throw file_error(fmt::format("{}: not valid JSON: {}", name, problem.what()));
  }
  if (!parsed.is_object()) {
    throw file_error(
        fmt::format("{}: expected a JSON object, but it is {}", name, parsed.type_name()));
  }
  return parsed;
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
