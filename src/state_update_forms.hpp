#pragma once

#include <mambatile/state_update.hpp>
#include <mambatile/tensor_view.hpp>

#include "state_ends.hpp"

// The forms that a state_update may come in, as one. For checks and backends; state_ends.hpp says
// where its states are.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// The arguments with a token axis in x, dt, B, C, z and out, of extent 1 where it was left out.
[[nodiscard]] state_update_arguments with_token_axis(state_update_arguments arguments) noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
