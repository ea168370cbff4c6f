#include "overlap.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

struct axis {
  std::int64_t extent = 1;
  std::int64_t stride = 0;  // in bytes, not negative
};

// A view in bytes: the lowest address, and the axes that have more than one element.
struct footprint {
  std::int64_t begin = 0;
  std::int64_t element = 0;
  int rank = 0;
  std::array<axis, max_rank> axes = {};

  explicit footprint(const_tensor_view const& view)
      : begin(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(view.data))),
        element(static_cast<std::int64_t>(size_of(view.type))) {
    for (int index = 0; index < view.rank; ++index) {
      auto const extent = view.extent(index);
      if (extent <= 1) continue;
      auto stride = view.stride(index) * element;
      if (stride < 0) {
        begin += stride * (extent - 1);
        stride = -stride;
      }
      axes[static_cast<std::size_t>(rank++)] = {extent, stride};
    }
  }

  [[nodiscard]] std::int64_t end() const {
    std::int64_t last = begin + element;
    for (int index = 0; index < rank; ++index) {
      auto const& each = axes[static_cast<std::size_t>(index)];
      last += each.stride * (each.extent - 1);
    }
    return last;
  }

  // Bytes spanned by the axes that a common pitch does not divide; nothing when they do not fit
  // into one pitch.
  [[nodiscard]] std::optional<std::int64_t> span_within(std::int64_t pitch) const {
    std::int64_t span = element;
    for (int index = 0; index < rank; ++index) {
      auto const& each = axes[static_cast<std::size_t>(index)];
      if (each.stride % pitch != 0) span += each.stride * (each.extent - 1);
    }
    return span <= pitch ? std::optional(span) : std::nullopt;
  }
};

bool apart_within(footprint const& left, footprint const& right, std::int64_t pitch) {
  if (pitch <= 0) return false;
  auto const left_span = left.span_within(pitch);
  auto const right_span = right.span_within(pitch);
  if (!left_span || !right_span) return false;
  // Distance from left's first byte up to right's, around the circle of one pitch.
  auto const distance = ((right.begin - left.begin) % pitch + pitch) % pitch;
  return distance >= *left_span && distance + *right_span <= pitch;
}

}  // namespace

bool is_identical(const_tensor_view const& left, const_tensor_view const& right) {
  if (left.data != right.data || left.type != right.type || left.rank != right.rank) return false;
  for (int index = 0; index < left.rank; ++index) {
    if (left.extent(index) != right.extent(index)) return false;
    if (left.extent(index) > 1 && left.stride(index) != right.stride(index)) return false;
  }
  return true;
}

bool may_overlap(const_tensor_view const& left, const_tensor_view const& right) {
  if (left.size() == 0 || right.size() == 0 || left.where != right.where) return false;
  footprint const a(left);
  footprint const b(right);
  if (a.end() <= b.begin || b.end() <= a.begin) return false;
  for (auto const* either : {&a, &b}) {
    for (int index = 0; index < either->rank; ++index) {
      if (apart_within(a, b, either->axes[static_cast<std::size_t>(index)].stride)) return false;
    }
  }
  return true;
}

byte_span byte_span_of(const_tensor_view const& view) {
  auto from_data = view;
  from_data.data = nullptr;
  footprint const print(from_data);
  return {print.begin, print.end()};
}

bool may_overlap_itself(const_tensor_view const& view) {
  if (view.size() == 0) return false;
  footprint print(view);
  auto const begin = print.axes.begin();
  std::sort(begin, begin + print.rank,
            [](axis const& left, axis const& right) { return left.stride < right.stride; });
  std::int64_t span = print.element;
  for (int index = 0; index < print.rank; ++index) {
    auto const& each = print.axes[static_cast<std::size_t>(index)];
    if (each.stride < span) return true;
    span += each.stride * (each.extent - 1);
  }
  return false;
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
