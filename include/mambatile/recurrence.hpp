#pragma once

#include <cstdint>
#include <string_view>

/// @file
/// What the operators that run the recurrence share, over whole sequences (chunk_scan) and over the
/// next few tokens (state_update). Per batch row and head:
///
///     r = dt + dt_bias     s = dt_softplus ? softplus(r) : r     delta = clamp(s, dt_limit)
///     S_t = exp(delta_t A) S_{t-1} + delta_t x_t (outer) B_t
///     y_t = S_t C_t + D x_t      out_t = z ? y_t silu(z_t) : y_t
///
/// Head i reads group i / (nheads / ngroups) of B and C. Everything is accumulated in f32 or
/// better. softplus(r) = log1p(exp(r)), and r itself for r > 20. The
/// clamp lets a NaN through. Source: Dao and Gu, "Transformers are SSMs" (2024), sections 6 and 7.

namespace mambatile {
inline namespace v0 {

/// The skip connection D x.
enum class skip : std::uint8_t {
  none,
  per_head,     ///< D has shape (nheads)
  per_channel,  ///< D has shape (nheads, headdim)
};

[[nodiscard]] constexpr std::string_view to_string(skip value) noexcept {
  switch (value) {
    case skip::none: return "none";
    case skip::per_head: return "per_head";
    case skip::per_channel: return "per_channel";
  }
  return "unknown";
}

}  // namespace v0
}  // namespace mambatile
