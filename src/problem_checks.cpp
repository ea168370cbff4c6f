#include "problem_checks.hpp"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <mambatile/errors.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {

namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 48;

}  // namespace

void problem_checker::fail(std::string const& what) const {
  throw invalid_argument(fmt::format("{}: {}", operator_name_, what));
}

void problem_checker::not_negative(std::string_view field, std::int64_t value) const {
  if (value < 0) fail(fmt::format("{} = {}, but it must not be negative", field, value));
  // Far from the end of 64-bit offsets, so that sizes of workspaces cannot wrap around.
  if (value > largest_size) {
    fail(fmt::format("{} = {}, but it must be at most 2^48", field, value));
  }
}

void problem_checker::floating(std::string_view field, dtype type) const {
  if (!is_floating(type)) {
    fail(fmt::format("{} = {}, but it must be f32, bf16 or f16", field, enumerator_text(type)));
  }
}

void problem_checker::parameter_type(std::string_view field, dtype type, dtype io) const {
  if (type != dtype::f32 && type != io) {
    fail(fmt::format("{} = {}, but it must be f32 or the io type {}", field, enumerator_text(type),
                     to_string(io)));
  }
}

void problem_checker::groups(std::int64_t nheads, std::int64_t ngroups) const {
  if (ngroups < 1) fail(fmt::format("ngroups = {}, but it must be at least 1", ngroups));
  if (nheads % ngroups != 0) {
    fail(fmt::format("nheads = {} is not a multiple of ngroups = {}", nheads, ngroups));
  }
}

void problem_checker::product(std::string_view fields,
                              std::initializer_list<std::int64_t> sizes) const {
  std::int64_t total = 1;
  for (auto const size : sizes) {
    if (__builtin_mul_overflow(total, size, &total) || total > largest_size) {
      fail(fmt::format("{} = {}, but it must be at most 2^48", fields, fmt::join(sizes, " * ")));
    }
  }
}

void problem_checker::limits(std::array<float, 2> const& dt_limit) const {
  auto const [low, high] = dt_limit;
  // Written so that a NaN fails.
  if (!(low >= 0.0F && low <= high)) {
    fail(fmt::format("dt_limit = ({}, {}), but it must satisfy 0 <= lo <= hi", low, high));
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
