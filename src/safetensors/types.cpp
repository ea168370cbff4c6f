#include <array>
#include <cstddef>

#include <mambatile/errors.hpp>

#include "safetensors/header.hpp"

namespace mambatile {
namespace safetensors {
namespace {

struct type_row {
  safetensors_type type;
  std::string_view name;
  int bits;
};

using enum safetensors_type;
constexpr std::array<type_row, 22> type_table = {{
    {boolean, "BOOL", 8},
    {f4, "F4", 4},
    {f6_e2m3, "F6_E2M3", 6},
    {f6_e3m2, "F6_E3M2", 6},
    {u8, "U8", 8},
    {i8, "I8", 8},
    {f8_e5m2, "F8_E5M2", 8},
    {f8_e4m3, "F8_E4M3", 8},
    {f8_e8m0, "F8_E8M0", 8},
    {f8_e4m3fnuz, "F8_E4M3FNUZ", 8},
    {f8_e5m2fnuz, "F8_E5M2FNUZ", 8},
    {i16, "I16", 16},
    {u16, "U16", 16},
    {f16, "F16", 16},
    {bf16, "BF16", 16},
    {i32, "I32", 32},
    {u32, "U32", 32},
    {f32, "F32", 32},
    {c64, "C64", 64},
    {f64, "F64", 64},
    {i64, "I64", 64},
    {u64, "U64", 64},
}};

constexpr bool rows_follow_the_enumeration() {
  for (std::size_t row = 0; row < type_table.size(); ++row) {
    if (static_cast<std::size_t>(type_table[row].type) != row) return false;
  }
  return true;
}
static_assert(rows_follow_the_enumeration());

bool is_known(safetensors_type type) noexcept {
  return static_cast<std::size_t>(type) < type_table.size();
}

type_row const& row_of(safetensors_type type) {
  if (!is_known(type)) {
    throw invalid_argument("safetensors: " + std::to_string(static_cast<int>(type)) +
                           " is no safetensors_type");
  }
  return type_table[static_cast<std::size_t>(type)];
}

}  // namespace

std::optional<safetensors_type> parse_type(std::string_view text) noexcept {
  for (auto const& row : type_table) {
    if (row.name == text) return row.type;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> bytes_of(safetensors_type type, std::span<std::int64_t const> shape) {
  bool empty = false;
  auto bits = static_cast<std::int64_t>(bits_of(type));
  for (auto extent : shape) {
    // An empty tensor's other extents count too: offsets computed from them must not overflow.
    if (extent == 0) {
      empty = true;
    } else if (extent < 0 || __builtin_mul_overflow(bits, extent, &bits)) {
      return std::nullopt;
    }
  }
  if (empty) return 0;
  if (bits % 8 != 0) return std::nullopt;
  return static_cast<std::uint64_t>(bits / 8);
}

std::string quote(std::string_view text) {
  constexpr std::size_t longest = 80;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result = "'";
  for (char character : text.substr(0, longest)) {
    auto const code = static_cast<unsigned char>(character);
    if (code < 0x20 || code == 0x7f) {
      result += "\\x";
      result += digits[code >> 4U];
      result += digits[code & 15U];
    } else {
      result += character;
    }
  }
  if (text.size() > longest) {
    // Do not end inside a UTF-8 sequence.
    while (result.size() > 1 && (static_cast<unsigned char>(result.back()) & 0xc0U) == 0x80U) {
      result.pop_back();
    }
    if (static_cast<unsigned char>(result.back()) >= 0xc0U) result.pop_back();
    result += "...";
  }
  result += '\'';
  return result;
}

std::string shape_text(std::span<std::int64_t const> shape) {
  std::string result = "(";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis != 0) result += ", ";
    result += std::to_string(shape[axis]);
  }
  result += ')';
  return result;
}

}  // namespace safetensors

inline namespace v0 {

int bits_of(safetensors_type type) { return safetensors::row_of(type).bits; }

std::string_view to_string(safetensors_type type) noexcept {
  if (!safetensors::is_known(type)) return "unknown";
  return safetensors::type_table[static_cast<std::size_t>(type)].name;
}

std::optional<dtype> to_dtype(safetensors_type type) noexcept {
  switch (type) {
    case safetensors_type::f32: return dtype::f32;
    case safetensors_type::bf16: return dtype::bf16;
    case safetensors_type::f16: return dtype::f16;
    case safetensors_type::i32: return dtype::i32;
    default: return std::nullopt;
  }
}

safetensors_type to_safetensors_type(dtype type) {
  switch (type) {
    case dtype::f32: return safetensors_type::f32;
    case dtype::bf16: return safetensors_type::bf16;
    case dtype::f16: return safetensors_type::f16;
    case dtype::i32: return safetensors_type::i32;
  }
  throw invalid_argument("safetensors: " + std::to_string(static_cast<int>(type)) + " is no dtype");
}

}  // namespace v0
}  // namespace mambatile
