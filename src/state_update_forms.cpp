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

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
