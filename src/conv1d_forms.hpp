#pragma once

#include <cstdint>

#include <mambatile/conv1d.hpp>
#include <mambatile/tensor_view.hpp>

#include "argument_checks.hpp"

// Both conv operators in one form: a causal_conv1d is an update without speculation. Checks and
// host backends are written once, for the update.

namespace mambatile {
inline namespace v0 {
namespace detail {

[[nodiscard]] conv1d_update_problem as_update(conv1d_problem const& problem);
[[nodiscard]] conv1d_update_arguments as_update(conv1d_arguments const& arguments);

/// (b, c) as (b, 1, c); other views as they are.
template <class Void>
[[nodiscard]] constexpr basic_tensor_view<Void> with_token_axis(
    basic_tensor_view<Void> view) noexcept {
  if (view.rank != 2) return view;
  view.rank = 3;
  view.extents[2] = view.extents[1];
  view.strides[2] = view.strides[1];
  view.extents[1] = 1;
  view.strides[1] = 0;
  return view;
}

// Rows of a checked call: one per batch row, or per entry of cu_seqlens. Host index arrays.

[[nodiscard]] inline std::int64_t rows_of(conv1d_update_problem const& problem,
                                          conv1d_update_arguments const& arguments) noexcept {
  return problem.pack == packing::cu_seqlens ? arguments.cu_seqlens.extent(0) - 1
                                             : arguments.x.extent(0);
}

/// Tokens [begin, end) of batch row b.
struct conv1d_row {
  std::int64_t b;
  std::int64_t begin;
  std::int64_t end;
};

/// `arguments` has its token axis.
[[nodiscard]] inline conv1d_row row_of(conv1d_update_problem const& problem,
                                       conv1d_update_arguments const& arguments,
                                       std::int64_t row) noexcept {
  if (problem.pack != packing::cu_seqlens) return {row, 0, arguments.x.extent(1)};
  return {0, index_at(arguments.cu_seqlens, row), index_at(arguments.cu_seqlens, row + 1)};
}

/// Tokens of the row in the call before this one.
[[nodiscard]] inline std::int64_t tokens_before(conv1d_update_problem const& problem,
                                                conv1d_update_arguments const& arguments,
                                                std::int64_t row) noexcept {
  if (problem.has_num_previous) return index_at(arguments.num_previous, row);
  auto const tokens = row_of(problem, arguments, row);
  return tokens.end - tokens.begin;
}

/// Whether num_accepted is compared with the previous call's tokens: a state that was stored per
/// token is otherwise picked by its column alone.
[[nodiscard]] inline bool counts_back(conv1d_update_problem const& problem) noexcept {
  return problem.has_num_accepted &&
         (!problem.per_token_source || problem.has_num_previous || problem.circular);
}

/// Tokens of the previous call that are taken back.
[[nodiscard]] inline std::int64_t rejected_of(conv1d_update_problem const& problem,
                                              conv1d_update_arguments const& arguments,
                                              std::int64_t row) noexcept {
  if (!counts_back(problem)) return 0;
  return tokens_before(problem, arguments, row) - index_at(arguments.num_accepted, row);
}

/// Columns of the row's source state, from its newest, that the rejected tokens fill. A ring and a
/// state per token have none: their place says where to start.
[[nodiscard]] inline std::int64_t dropped_columns(conv1d_update_problem const& problem,
                                                  conv1d_update_arguments const& arguments,
                                                  std::int64_t row) noexcept {
  return problem.per_token_source || problem.circular ? 0 : rejected_of(problem, arguments, row);
}

/// Column of a ring that the row's first token goes to, before the modulus.
[[nodiscard]] inline std::int64_t ring_start(conv1d_update_problem const& problem,
                                             conv1d_update_arguments const& arguments,
                                             std::int64_t row) noexcept {
  return index_at(arguments.cache_seqlens, row) - rejected_of(problem, arguments, row);
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
