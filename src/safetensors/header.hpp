#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <mambatile/safetensors.hpp>

// The header of a safetensors file: its grammar, its limits, and the checks that make every span
// handed out lie inside the file.

namespace mambatile::safetensors {

inline constexpr std::size_t length_bytes = 8;
inline constexpr std::uint64_t max_header_bytes = 100'000'000;  // as the format's own library
inline constexpr std::size_t max_axes = 16;
inline constexpr std::string_view metadata_key = "__metadata__";

struct header {
  std::vector<safetensors_tensor> tensors;  // in the order of their data
  std::map<std::string, std::string, std::less<>> metadata;
};

/// Parses and checks a whole file. Throws file_error, whose message begins with `name`. Memory
/// taken is proportional to the header that is really there, never to a number found in it.
[[nodiscard]] header parse(std::span<std::byte const> file, std::string const& name);

/// Bytes that a tensor of this shape takes; empty where they overflow or are no whole number.
[[nodiscard]] std::optional<std::uint64_t> bytes_of(safetensors_type type,
                                                    std::span<std::int64_t const> shape);

/// The type that a header names so.
[[nodiscard]] std::optional<safetensors_type> parse_type(std::string_view text) noexcept;

/// Text from a file as it may stand in a message: quoted, control characters escaped, shortened.
[[nodiscard]] std::string quote(std::string_view text);

/// "(2, 3)".
[[nodiscard]] std::string shape_text(std::span<std::int64_t const> shape);

}  // namespace mambatile::safetensors
