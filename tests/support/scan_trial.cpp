#include "support/scan_trial.hpp"

#include <array>
#include <charconv>
#include <sstream>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

#include "recurrence_problems.hpp"
#include "support/backend_under_test.hpp"

namespace mambatile::testing {
namespace {

// The one list of fields, for printing and parsing.
template <class Trial, class Visitor>
void for_each_field(Trial& trial, Visitor const& visit) {
  mambatile::detail::for_each_scan_field(trial.problem, visit);
  visit("seed", trial.seed);
  visit("regime", trial.regime);
  visit("lengths", trial.lengths);
  visit("padding_every", trial.padding_every);
  visit("inputs", trial.inputs);
  visit("outputs", trial.outputs);
  visit("states", trial.states);
  visit("one_buffer", trial.one_buffer);
  visit("in_place", trial.in_place);
  visit("spare_capacity", trial.spare_capacity);
  visit("call_threads", trial.threads);
}

template <class Field>
std::string print(Field const& value) {
  if constexpr (std::is_same_v<Field, std::vector<std::int64_t>>) {
    std::string text;
    for (auto const each : value) text += fmt::format("{}{}", text.empty() ? "" : ",", each);
    return text;
  } else if constexpr (std::is_enum_v<Field>) {
    return std::string(to_string(value));
  } else if constexpr (std::is_same_v<Field, bool>) {
    return value ? "1" : "0";
  } else {
    return fmt::format("{}", value);
  }
}

template <class Number>
Number parse_number(std::string_view text) {
  Number value{};
  auto const [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) {
    throw std::invalid_argument(fmt::format("\"{}\" is no number", text));
  }
  return value;
}

template <class Field>
void parse(std::string_view text, Field& value) {
  if constexpr (std::is_same_v<Field, std::vector<std::int64_t>>) {
    value.clear();
    while (!text.empty()) {
      auto const comma = text.find(',');
      value.push_back(parse_number<std::int64_t>(text.substr(0, comma)));
      text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    }
  } else if constexpr (std::is_enum_v<Field>) {
    for (int each = 0; each < 8; ++each) {
      auto const candidate = static_cast<Field>(each);
      if (to_string(candidate) == text) {
        value = candidate;
        return;
      }
    }
    throw std::invalid_argument(fmt::format("\"{}\" is no value of its field", text));
  } else if constexpr (std::is_same_v<Field, bool>) {
    value = text == "1";
  } else if constexpr (std::is_same_v<Field, std::string>) {
    value = text;
  } else {
    value = parse_number<Field>(text);
  }
}

}  // namespace

scan_problem scan_trial::planned_problem() const {
  auto planned = problem;
  planned.max_seqlen += spare_capacity;
  if (problem.pack == packing::cu_seqlens) {
    planned.max_sequences += spare_capacity;
  } else {
    planned.max_batch += spare_capacity;
  }
  return planned;
}

std::string to_string(scan_trial const& trial) {
  std::vector<std::string> defaults;
  scan_trial const plain;
  for_each_field(
      plain, [&](char const* /*name*/, auto const& value) { defaults.push_back(print(value)); });
  std::string text;
  std::size_t index = 0;
  for_each_field(trial, [&](char const* name, auto const& value) {
    auto const shown = print(value);
    if (shown != defaults[index++]) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, shown);
    }
  });
  return text;
}

scan_trial parse_trial(std::string_view text) {
  scan_trial trial;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    auto const equals = word.find('=');
    auto const name = word.substr(0, equals);
    auto const value = equals == std::string::npos ? std::string() : word.substr(equals + 1);
    bool is_known = false;
    for_each_field(trial, [&](char const* field, auto& to) {
      if (name != field) return;
      parse(value, to);
      is_known = true;
    });
    if (!is_known) throw std::invalid_argument(fmt::format("a trial has no field {}", name));
  }
  return trial;
}

std::string repro_line(scan_trial const& trial) {
  return fmt::format("MAMBATILE_TRIAL='{}' mambatile_test_{} 'scan: the given trial'",
                     to_string(trial), backend_under_test());
}

}  // namespace mambatile::testing
