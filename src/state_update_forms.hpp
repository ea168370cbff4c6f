#pragma once

#include <cstdint>

#include <mambatile/state_update.hpp>
#include <mambatile/tensor_view.hpp>

#include "argument_checks.hpp"

// The forms that a state_update may come in, as one. For checks and backends.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// The arguments with a token axis in x, dt, B, C, z and out, of extent 1 where it was left out.
[[nodiscard]] state_update_arguments with_token_axis(state_update_arguments arguments) noexcept;

/// All slots of the row are -1, in a call that skips such rows. Host index arrays.
[[nodiscard]] bool is_padding(state_update_problem const& problem,
                              state_update_arguments const& arguments, std::int64_t row) noexcept;

/// One row's states: offset of its (nheads, headdim, dstate) in elements, and whether there is one.
struct state_place {
  bool exists = false;
  std::int64_t offset = 0;
};

/// Where the row's state is read. Host index arrays.
[[nodiscard]] state_place source_of(state_update_problem const& problem,
                                    state_update_arguments const& arguments,
                                    std::int64_t row) noexcept;

/// Where the state after token `token` of the row is written. Host index arrays.
[[nodiscard]] state_place target_of(state_update_problem const& problem,
                                    state_update_arguments const& arguments, std::int64_t row,
                                    std::int64_t token, std::int64_t tokens) noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
