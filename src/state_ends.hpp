#pragma once

#include <cstdint>
#include <span>

#include "argument_checks.hpp"

// The two ends of a row's state in operators that step over a few tokens: where it is read and
// where it is written. An end is one state per row, one slot of a pool per row, or one of either
// per token.

namespace mambatile {
inline namespace v0 {
namespace detail {

struct state_end {
  named_tensor states;
  named_tensor slots;
  bool has_slots = false;
  bool per_token = false;
  std::int64_t columns = -1;  ///< states per row of a per-token end; -1 = as many as there are
};

/// Types and shapes of one end. `inner` are the axes of one state.
void check_state_end(argument_checker const& checker, dtype type, state_end const& end,
                     std::int64_t rows, std::span<expected_axis const> inner);

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
