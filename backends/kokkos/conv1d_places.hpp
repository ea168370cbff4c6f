#pragma once

#include <cstdint>

#include "conv1d_call.hpp"

// Where the raw inputs of windows and states come from: a token of the call, a column of the row's
// initial state, or nowhere (zero).

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// A place as one number: a token >= 0, no_place, or a column of the initial state.
inline constexpr std::int64_t no_place = -1;
[[nodiscard]] constexpr std::int64_t place_of_column(std::int64_t column) noexcept {
  return -2 - column;
}
[[nodiscard]] constexpr std::int64_t column_of_place(std::int64_t place) noexcept {
  return -2 - place;
}

/// One row of a call.
struct conv1d_walk {
  detail::conv1d_row tokens;
  std::int64_t row;
  bool has_state;             ///< an initial state to read
  std::int64_t state_offset;  ///< of it, in elements

  conv1d_walk(conv1d_call const& call, std::int64_t row) noexcept;
};

/// seq_idx of a token; without seq_idx all tokens of a row are sequence 0.
[[nodiscard]] std::int32_t sequence_at(conv1d_call const& call, conv1d_walk const& walk,
                                       std::int64_t token) noexcept;

/// The last `count` raw inputs before token `end`, oldest first, of the sequence that owns token
/// `end - 1` or, for `of_next`, token `end`.
void find_history(conv1d_call const& call, conv1d_walk const& walk, std::int64_t end, bool of_next,
                  std::int64_t count, std::int64_t* places) noexcept;

/// The columns of the row's state after its tokens before `end`.
void find_state(conv1d_call const& call, conv1d_walk const& walk, std::int64_t end,
                std::int64_t* places) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
