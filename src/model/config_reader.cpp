#include "model/config_reader.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <mambatile/errors.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {

config_reader::config_reader(nlohmann::json const& object, std::string name, std::string prefix)
    : object_(object), name_(std::move(name)), prefix_(std::move(prefix)) {}

nlohmann::json const* config_reader::find(std::string_view key) const {
  auto const found = object_.find(key);
  // An explicit null is how Python writes "not set".
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool config_reader::has(std::string_view key) const { return find(key) != nullptr; }

void config_reader::refuse(std::string_view key, std::string_view rule) const {
  auto const* value = find(key);
  auto shown = value == nullptr
                   ? std::string("absent")
                   : value->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (shown.size() > 80) shown = shown.substr(0, 77) + "...";
  throw file_error(fmt::format("{}: {}{} is {}; {}", name_, prefix_, key, shown, rule));
}

std::int64_t config_reader::integer(std::string_view key, std::int64_t lowest) const {
  constexpr std::int64_t highest = std::numeric_limits<std::int32_t>::max();
  auto const* value = find(key);
  bool const fits = value != nullptr && value->is_number_integer() &&
                    (!value->is_number_unsigned() ||
                     value->get<std::uint64_t>() <= static_cast<std::uint64_t>(highest)) &&
                    value->get<std::int64_t>() >= lowest && value->get<std::int64_t>() <= highest;
  if (!fits) {
    refuse(key, fmt::format("it must be a whole number from {} to {}", lowest, highest));
  }
  return value->get<std::int64_t>();
}

std::int64_t config_reader::integer_or(std::string_view key, std::int64_t lowest,
                                       std::int64_t fallback) const {
  return has(key) ? integer(key, lowest) : fallback;
}

bool config_reader::boolean_or(std::string_view key, bool fallback) const {
  auto const* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse(key, "it must be true or false");
  return value->get<bool>();
}

std::string config_reader::text_or(std::string_view key, std::string_view fallback) const {
  auto const* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) refuse(key, "it must be text");
  return value->get<std::string>();
}

std::optional<double> config_reader::number(nlohmann::json const& value) const {
  if (value.is_number()) return value.get<double>();
  // Newer transformers wrap what JSON has no number for.
  auto const& word = value.is_object() && value.size() == 1 && value.contains("__float__")
                         ? value.at("__float__")
                         : value;
  if (!word.is_string()) return std::nullopt;
  auto const text = word.get<std::string>();
  if (text == "Infinity" || text == "inf") return std::numeric_limits<double>::infinity();
  return std::nullopt;
}

float config_reader::positive_or(std::string_view key, float fallback) const {
  auto const* value = find(key);
  if (value == nullptr) return fallback;
  auto const result = value->is_number() ? static_cast<float>(value->get<double>()) : 0.0F;
  if (!(result > 0.0F) || !std::isfinite(result)) refuse(key, "it must be a number > 0");
  return result;
}

std::array<float, 2> config_reader::limits_or(std::string_view key,
                                              std::array<float, 2> fallback) const {
  auto const* value = find(key);
  if (value == nullptr) return fallback;
  constexpr std::string_view rule = "it must be two numbers [lo, hi] with 0 <= lo <= hi";
  if (!value->is_array() || value->size() != 2) refuse(key, rule);
  auto const low = number(value->at(0));
  auto const high = number(value->at(1));
  if (!low || !high || !(*low >= 0.0 && *low <= *high)) refuse(key, rule);
  return {static_cast<float>(*low), static_cast<float>(*high)};
}

std::vector<std::int32_t> config_reader::token_ids(std::string_view key,
                                                   std::int64_t vocab_size) const {
  auto const* value = find(key);
  if (value == nullptr) return {};
  std::vector<std::int32_t> ids;
  auto const add = [&](nlohmann::json const& id) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
        id.get<std::int64_t>() >= vocab_size) {
      refuse(key, fmt::format("token ids are whole numbers from 0 to vocab_size - 1 = {}",
                              vocab_size - 1));
    }
    ids.push_back(static_cast<std::int32_t>(id.get<std::int64_t>()));
  };
  if (value->is_array()) {
    for (auto const& id : *value) add(id);
  } else {
    add(*value);
  }
  return ids;
}

config_reader config_reader::nested(std::string_view key) const {
  auto const* value = find(key);
  if (value == nullptr)
    return config_reader(nlohmann::json::object(), name_, std::string(key) + ".");
  if (!value->is_object()) refuse(key, "it must be an object");
  return config_reader(*value, name_, prefix_ + std::string(key) + ".");
}

bool config_reader::is_empty_list_or_absent(std::string_view key) const {
  auto const* value = find(key);
  return value == nullptr || (value->is_array() && value->empty());
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
