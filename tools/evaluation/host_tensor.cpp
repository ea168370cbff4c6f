#include "evaluation/host_tensor.hpp"

#include <algorithm>
#include <new>

namespace mambatile::evaluation {
namespace {
constexpr std::align_val_t alignment{64};
}

void host_tensor::release::operator()(std::byte* data) const noexcept {
  ::operator delete(data, alignment);
}

host_tensor::host_tensor(dtype type, std::span<std::int64_t const> shape) {
  view_.type = type;
  view_.rank = static_cast<int>(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    view_.extents[axis] = shape[axis];
    view_.strides[axis] = stride;
    stride *= shape[axis];
  }
  auto const count = std::max<std::size_t>(bytes(), 1);
  memory_.reset(static_cast<std::byte*>(::operator new(count, alignment)));
  view_.data = memory_.get();
}

}  // namespace mambatile::evaluation
