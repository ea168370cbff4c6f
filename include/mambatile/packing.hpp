#pragma once

#include <cstdint>
#include <string_view>

/// @file
/// How sequences share the token axis: the same for all operators over sequences.

namespace mambatile {
inline namespace v0 {

/// How sequences lie in the token axis.
enum class packing : std::uint8_t {
  dense,       ///< one sequence per batch row
  cu_seqlens,  ///< batch = 1; sequence i owns the tokens [cu_seqlens[i], cu_seqlens[i + 1])
  seq_idx,     ///< each token names its sequence; -1 is padding
};

[[nodiscard]] constexpr std::string_view to_string(packing value) noexcept {
  switch (value) {
    case packing::dense: return "dense";
    case packing::cu_seqlens: return "cu_seqlens";
    case packing::seq_idx: return "seq_idx";
  }
  return "unknown";
}

}  // namespace v0
}  // namespace mambatile
