#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {

/// Typed, checked access to the keys of one JSON object; every failure is a file_error that names
/// the file, the key, its value and the rule.
class config_reader {
 public:
  /// `prefix` is put before keys in messages: "ssm_cfg." for a nested object.
  config_reader(nlohmann::json const& object, std::string name, std::string prefix = {});

  [[nodiscard]] bool has(std::string_view key) const;
  /// A whole number within [lowest, 2^31).
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t lowest) const;
  [[nodiscard]] std::int64_t integer_or(std::string_view key, std::int64_t lowest,
                                        std::int64_t fallback) const;
  [[nodiscard]] bool boolean_or(std::string_view key, bool fallback) const;
  [[nodiscard]] std::string text_or(std::string_view key, std::string_view fallback) const;
  /// A finite number > 0.
  [[nodiscard]] float positive_or(std::string_view key, float fallback) const;
  /// Two numbers, 0 <= lo <= hi, hi possibly infinite.
  [[nodiscard]] std::array<float, 2> limits_or(std::string_view key,
                                               std::array<float, 2> fallback) const;
  /// Nothing, one token id or a list of them, each within [0, vocab_size).
  [[nodiscard]] std::vector<std::int32_t> token_ids(std::string_view key,
                                                    std::int64_t vocab_size) const;
  /// The nested object under a key; an empty one where the key is absent.
  [[nodiscard]] config_reader nested(std::string_view key) const;
  [[nodiscard]] bool is_empty_list_or_absent(std::string_view key) const;

  [[noreturn]] void refuse(std::string_view key, std::string_view rule) const;

 private:
  [[nodiscard]] nlohmann::json const* find(std::string_view key) const;
  [[nodiscard]] std::optional<double> number(nlohmann::json const& value) const;

  nlohmann::json object_;
  std::string name_;
  std::string prefix_;
};

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
