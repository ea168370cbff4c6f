#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/dtype.hpp>

#include "enumerator_text.hpp"

// Rules for the fields of a problem that operators share.

namespace mambatile {
inline namespace v0 {
namespace detail {

class problem_checker {
 public:
  explicit problem_checker(std::string_view operator_name) noexcept
      : operator_name_(operator_name) {}

  /// Nor beyond any use.
  void not_negative(std::string_view field, std::int64_t value) const;
  void floating(std::string_view field, dtype type) const;
  /// An enumerator, not any number in its type; `last` is the last of them.
  template <class Enum>
  void enumerator(std::string_view field, Enum value, Enum last) const {
    if (value <= last) return;
    std::string names;
    for (int each = 0; each <= static_cast<int>(last); ++each) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(static_cast<Enum>(each)));
    }
    fail(fmt::format("{} = {}, but it must be one of {}", field, enumerator_text(value), names));
  }
  /// D and dt_bias are f32 or of the io type.
  void parameter_type(std::string_view field, dtype type, dtype io) const;
  /// ngroups >= 1 divides nheads.
  void groups(std::int64_t nheads, std::int64_t ngroups) const;
  /// The product of sizes is far from the end of 64-bit offsets.
  void product(std::string_view fields, std::initializer_list<std::int64_t> sizes) const;
  /// 0 <= lo <= hi, no NaN.
  void limits(std::array<float, 2> const& dt_limit) const;

  [[noreturn]] void fail(std::string const& what) const;

 private:
  std::string_view operator_name_;
};

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
