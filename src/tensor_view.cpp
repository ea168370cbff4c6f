#include <mambatile/tensor_view.hpp>

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace mambatile {
inline namespace v0 {

std::string to_string(device where) {
  switch (where.kind) {
    case device_kind::host: return "host";
    case device_kind::cuda: return fmt::format("cuda:{}", where.index);
  }
  return fmt::format("device kind {}", static_cast<int>(where.kind));
}

std::string shape_string(const_tensor_view const& view) {
  std::string text = "(";
  for (int axis = 0; axis < std::min(view.rank, max_rank); ++axis) {
    if (axis != 0) text += ", ";
    text += fmt::format("{}", view.extent(axis));
  }
  return text + ")";
}

}  // namespace v0
}  // namespace mambatile
