#include "state_ends.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

// The axes of a tensor of states: some outer ones, then one state's own.
struct state_shape {
  std::array<expected_axis, max_rank> axes = {};
  std::size_t rank = 0;

  state_shape(std::initializer_list<expected_axis> outer, std::span<expected_axis const> inner) {
    for (auto const& axis : outer) axes[rank++] = axis;
    for (auto const& axis : inner) axes[rank++] = axis;
  }
  [[nodiscard]] std::span<expected_axis const> all() const { return {axes.data(), rank}; }
  void check_rank(argument_checker const& checker, named_tensor const& states) const {
    if (states.view.rank == static_cast<int>(rank)) return;
    std::string text;
    for (auto const& axis : all()) {
      text += text.empty() ? "(" : ", ";
      text += axis.name;
    }
    checker.rank(states, static_cast<int>(rank), text + ")");
  }
};

}  // namespace

void check_state_end(argument_checker const& checker, dtype type, state_end const& end,
                     std::int64_t rows, std::span<expected_axis const> inner) {
  auto const& states = end.states;
  expected_axis const row_axis{"rows", rows};
  // Ranks first: extents are read below.
  if (end.has_slots) {
    checker.rank(end.slots, end.per_token ? 2 : 1, end.per_token ? "(rows, tokens)" : "(rows)");
    state_shape const any({{"slots", 0}}, inner);
    any.check_rank(checker, states);
    checker.tensor(states, type, state_shape({{"slots", states.view.extent(0)}}, inner).all());
    expected_axis const tokens{"tokens", end.columns < 0 ? end.slots.view.extent(1) : end.columns};
    if (end.per_token) {
      checker.tensor(end.slots, dtype::i32, {row_axis, tokens});
    } else {
      checker.tensor(end.slots, dtype::i32, {row_axis});
    }
  } else if (end.per_token) {
    state_shape const any({row_axis, {"tokens", 0}}, inner);
    any.check_rank(checker, states);
    expected_axis const tokens{"tokens", end.columns < 0 ? states.view.extent(1) : end.columns};
    checker.tensor(states, type, state_shape({row_axis, tokens}, inner).all());
  } else {
    checker.tensor(states, type, state_shape({row_axis}, inner).all());
  }
}

void check_accepted(argument_checker const& checker, accepted_tokens const& accepted,
                    std::int64_t row, std::string_view source, std::int64_t columns) {
  auto const column = accepted_column(accepted, row);
  if (column >= 0 && column < columns) return;
  auto const count = index_at(accepted.counts, row);
  if (count == 0) {
    checker.fail(fmt::format(
        "num_accepted[{}] = 0, but {} has the states after 1 to {} tokens; with the one that the "
        "previous call started from in front of them, and source_has_start = true, 0 is served",
        row, source, columns));
  }
  checker.fail(fmt::format("num_accepted[{}] = {}, but it must be {} to {}: {} has {} states a row",
                           row, count, accepted.of_first, columns - 1 + accepted.of_first, source,
                           columns));
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
