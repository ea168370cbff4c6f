#include "scan_part_states.hpp"

#include <algorithm>
#include <cstdint>

#include "argument_checks.hpp"
#include "scan_tiles.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

// The row of a tensor of states that belongs to a sequence; -1 = none.
std::int64_t row_in(bool has_states, bool has_slots, const_tensor_view const& slots,
                    std::int64_t row) noexcept {
  if (!has_states) return -1;
  return has_slots ? detail::index_at(slots, row) : row;
}

}  // namespace

part_states::part_states(scan_call const& call, scan_row const& row, scan_part const& part,
                         scan_scratch const& scratch) noexcept
    : problem_(call.layout.problem),
      arguments_(call.arguments),
      row_(row),
      part_(part),
      panels_(scratch.states),
      elements_(panel_elements(part.columns.end - part.columns.begin, problem_.dstate)),
      source_row_(row_in(problem_.has_initial_states, problem_.has_state_source,
                         call.arguments.state_source, row.row)),
      target_row_(row_in(problem_.has_final_states, problem_.has_state_target,
                         call.arguments.state_target, row.row)),
      is_target_direct_(target_row_ >= 0 && is_direct(call.arguments.final_states)) {
  if (source_row_ < 0) return;
  place_ = place::source;
  if (!is_direct(arguments_.initial_states)) materialise();
}

bool part_states::is_direct(const_tensor_view const& view) const noexcept {
  return problem_.state == dtype::f32 && view.stride(2) == 1 &&
         (part_.columns.end - part_.columns.begin) % pack_width == 0;
}

state_rows part_states::panel(std::int64_t head, std::int64_t column) const noexcept {
  float* const data = panels_ + (head - part_.first_head) * elements_ +
                      (column - part_.columns.begin) * problem_.dstate;
  return {data, std::int64_t{panel_vectors(part_.columns, column)} * pack_width};
}

state_rows part_states::direct(const_tensor_view const& view, std::int64_t row, std::int64_t head,
                               std::int64_t column) const noexcept {
  auto const* data =
      static_cast<float const*>(view.data) + row * view.stride(0) + head * view.stride(1) + column;
  return {const_cast<float*>(data), view.stride(3)};
}

state_rows part_states::source(std::int64_t head, std::int64_t column) const noexcept {
  return place_ == place::source ? direct(arguments_.initial_states, source_row_, head, column)
                                 : panel(head, column);
}

state_rows part_states::target(std::int64_t head, std::int64_t column) const noexcept {
  return writes_tensor_ ? direct(arguments_.final_states, target_row_, head, column)
                        : panel(head, column);
}

state_matrix part_states::matrix(const_tensor_view const& view,
                                 std::int64_t offset) const noexcept {
  auto const bytes = offset * static_cast<std::int64_t>(size_of(problem_.state));
  auto const* data = static_cast<char const*>(view.data) + bytes;
  return {const_cast<char*>(data), problem_.state, view.stride(view.rank - 2),
          view.stride(view.rank - 1)};
}

void part_states::materialise() noexcept {
  auto const heads = part_.end_head - part_.first_head;
  if (place_ == place::nowhere) {
    std::fill_n(panels_, heads * elements_, 0.0F);
  } else if (place_ == place::source) {
    auto const& from = arguments_.initial_states;
    for (auto head = part_.first_head; head < part_.end_head; ++head) {
      load_state(matrix(from, source_row_ * from.stride(0) + head * from.stride(1)), part_.columns,
                 problem_.dstate, panel(head, part_.columns.begin).data);
    }
  }
  place_ = place::panels;
}

void part_states::store_snapshot(std::int64_t index) noexcept {
  materialise();
  auto const& to = arguments_.intermediate_states;
  auto const snapshot = row_.begin / problem_.intermediate_every + index;
  for (auto head = part_.first_head; head < part_.end_head; ++head) {
    store_state(
        panel(head, part_.columns.begin).data, part_.columns, problem_.dstate,
        matrix(to, row_.batch * to.stride(0) + snapshot * to.stride(1) + head * to.stride(2)));
  }
}

void part_states::store_final() noexcept {
  if (target_row_ < 0 || place_ == place::target) return;
  materialise();
  auto const& to = arguments_.final_states;
  for (auto head = part_.first_head; head < part_.end_head; ++head) {
    store_state(panel(head, part_.columns.begin).data, part_.columns, problem_.dstate,
                matrix(to, target_row_ * to.stride(0) + head * to.stride(1)));
  }
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
