#include "conv1d_places.hpp"

#include <algorithm>
#include <cstdint>

#include "argument_checks.hpp"
#include "state_ends.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {

conv1d_walk::conv1d_walk(conv1d_call const& call, std::int64_t which) noexcept
    : tokens(detail::row_of(call.problem, call.arguments, which)), row(which) {
  auto const source = detail::source_of(call.problem, call.arguments, which);
  has_state = source.exists;
  state_offset = source.offset;
}

std::int32_t sequence_at(conv1d_call const& call, conv1d_walk const& walk,
                         std::int64_t token) noexcept {
  if (call.problem.pack != packing::seq_idx) return 0;
  return detail::index_at(call.arguments.seq_idx, walk.tokens.b, token);
}

void find_history(conv1d_call const& call, conv1d_walk const& walk, std::int64_t end, bool of_next,
                  std::int64_t count, std::int64_t* places) noexcept {
  std::int64_t left = count;
  std::int32_t sequence = of_next ? sequence_at(call, walk, end) : -1;
  for (auto token = end - 1; token >= walk.tokens.begin && left > 0; --token) {
    auto const each = sequence_at(call, walk, token);
    if (each < 0) continue;  // padding is not there
    if (sequence < 0) sequence = each;
    if (each != sequence) {
      std::fill_n(places, left, no_place);
      return;
    }
    places[--left] = token;
  }
  auto const& problem = call.problem;
  if (walk.has_state && left > 0) {
    auto const length = problem.state_len;
    if (problem.circular) {
      auto const start = detail::ring_start(problem, call.arguments, walk.row);
      for (std::int64_t back = 1; left > 0 && back <= length; ++back) {
        places[--left] = place_of_column(((start - back) % length + length) % length);
      }
    } else {
      auto const columns = length - detail::dropped_columns(problem, call.arguments, walk.row);
      for (auto column = columns - 1; left > 0 && column >= 0; --column) {
        places[--left] = place_of_column(column);
      }
    }
  }
  std::fill_n(places, left, no_place);
}

void find_state(conv1d_call const& call, conv1d_walk const& walk, std::int64_t end,
                std::int64_t* places) noexcept {
  auto const& problem = call.problem;
  auto const length = problem.state_len;
  if (!problem.circular) {
    find_history(call, walk, end, false, length, places);
    return;
  }
  for (std::int64_t column = 0; column < length; ++column) {
    places[column] = walk.has_state ? place_of_column(column) : no_place;
  }
  auto position = detail::ring_start(problem, call.arguments, walk.row);
  auto token = walk.tokens.begin;
  if (problem.pack != packing::seq_idx && end - token > length) {
    // Earlier tokens are overwritten.
    position += end - length - token;
    token = end - length;
  }
  std::int32_t sequence = -1;
  for (; token < end; ++token) {
    auto const each = sequence_at(call, walk, token);
    if (each < 0) continue;
    if (sequence >= 0 && each != sequence) std::fill_n(places, length, no_place);
    sequence = each;
    places[position++ % length] = token;
  }
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
