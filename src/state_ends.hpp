#pragma once

#include <cstdint>
#include <span>
#include <string_view>

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

/// The row has a state after the tokens that count. `source` holds `columns` states of it.
void check_accepted(argument_checker const& checker, accepted_tokens const& accepted,
                    std::int64_t row, std::string_view source, std::int64_t columns);

// Where the states of a checked call are. Problem and Arguments are those of any operator that
// steps over a few tokens. Host index arrays.

/// All slots of the row are -1, in a call that skips such rows.
template <class Problem, class Arguments>
[[nodiscard]] bool is_padding(Problem const& problem, Arguments const& arguments,
                              std::int64_t row) noexcept {
  return problem.skip_padding && all_none(arguments.state_source, row) &&
         (!problem.has_state_target || all_none(arguments.state_target, row));
}

/// How num_accepted picks a state.
template <class Problem, class Arguments>
[[nodiscard]] accepted_tokens accepted_of(Problem const& problem,
                                          Arguments const& arguments) noexcept {
  return {arguments.num_accepted, problem.source_has_start ? 0 : 1};
}

/// One row's state: offset of its first element in elements, and whether there is one.
struct state_place {
  bool exists = false;
  std::int64_t offset = 0;
};

/// Where the row's state is read.
template <class Problem, class Arguments>
[[nodiscard]] state_place source_of(Problem const& problem, Arguments const& arguments,
                                    std::int64_t row) noexcept {
  if (!problem.has_initial_states) return {};
  auto const& states = arguments.initial_states;
  if (problem.has_state_source) {
    auto const slot = source_slot(arguments.state_source, accepted_of(problem, arguments), row);
    return {slot >= 0, slot * states.stride(0)};
  }
  auto offset = row * states.stride(0);
  if (problem.per_token_source) {
    offset += accepted_column(accepted_of(problem, arguments), row) * states.stride(1);
  }
  return {true, offset};
}

/// Where the state after token `token` of the row's `tokens` is written.
template <class Problem, class Arguments>
[[nodiscard]] state_place target_of(Problem const& problem, Arguments const& arguments,
                                    std::int64_t row, std::int64_t token,
                                    std::int64_t tokens) noexcept {
  if (!problem.has_final_states) return {};
  if (!problem.per_token_target && token != tokens - 1) return {};
  auto const& states = arguments.final_states;
  if (problem.has_state_target) {
    auto const slot = problem.per_token_target ? index_at(arguments.state_target, row, token)
                                               : index_at(arguments.state_target, row);
    return {slot >= 0, slot * states.stride(0)};
  }
  auto offset = row * states.stride(0);
  if (problem.per_token_target) offset += token * states.stride(1);
  return {true, offset};
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
