#include <mambatile/tensor_view.hpp>

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace mambatile {
inline namespace v0 {

std::string to_string(device where) {
  return where.kind == device_kind::host ? std::string("host")
                                         : fmt::format("cuda:{}", where.index);
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
