#include "state_update_forms.hpp"

#include <cstddef>
#include <cstdint>

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

template <class Void>
void insert_token_axis(basic_tensor_view<Void>& view) noexcept {
  if (!view || view.rank == max_rank) return;
  for (int axis = view.rank; axis > 1; --axis) {
    auto const to = static_cast<std::size_t>(axis);
    view.extents[to] = view.extents[to - 1];
    view.strides[to] = view.strides[to - 1];
  }
  view.extents[1] = 1;
  view.strides[1] = 0;
  ++view.rank;
}

}  // namespace

state_update_arguments with_token_axis(state_update_arguments arguments) noexcept {
  if (arguments.x.rank != 3) return arguments;
  insert_token_axis(arguments.x);
  insert_token_axis(arguments.dt);
  insert_token_axis(arguments.B);
  insert_token_axis(arguments.C);
  insert_token_axis(arguments.z);
  insert_token_axis(arguments.out);
  return arguments;
}

bool is_padding(state_update_problem const& problem, state_update_arguments const& arguments,
                std::int64_t row) noexcept {
  return problem.skip_padding && all_none(arguments.state_source, row) &&
         (!problem.has_state_target || all_none(arguments.state_target, row));
}

state_place source_of(state_update_problem const& problem, state_update_arguments const& arguments,
                      std::int64_t row) noexcept {
  if (!problem.has_initial_states) return {};
  auto const& states = arguments.initial_states;
  if (problem.has_state_source) {
    auto const slot = source_slot(arguments.state_source, arguments.num_accepted, row);
    return {slot >= 0, slot * states.stride(0)};
  }
  auto offset = row * states.stride(0);
  if (problem.per_token_source) {
    offset += (index_at(arguments.num_accepted, row) - 1) * states.stride(1);
  }
  return {true, offset};
}

state_place target_of(state_update_problem const& problem, state_update_arguments const& arguments,
                      std::int64_t row, std::int64_t token, std::int64_t tokens) noexcept {
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
