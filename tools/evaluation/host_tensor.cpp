#include "evaluation/host_tensor.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>

#include <fmt/format.h>

#include <mambatile/errors.hpp>

namespace mambatile::evaluation {
namespace {

constexpr std::align_val_t alignment{64};

// The system promises more than it has, and ends who takes it up.
std::atomic<std::int64_t> bytes_in_use{0};

std::int64_t most_bytes() noexcept {
  static std::int64_t const bytes =
      std::int64_t{::sysconf(_SC_PHYS_PAGES)} * std::int64_t{::sysconf(_SC_PAGESIZE)};
  return bytes;
}

}  // namespace

void host_tensor::release::operator()(std::byte* data) const noexcept {
  ::operator delete(data, alignment);
  bytes_in_use -= bytes;
}

host_tensor::host_tensor(dtype type, std::span<std::int64_t const> shape) {
  view_.type = type;
  view_.rank = static_cast<int>(shape.size());
  std::int64_t stride = 1;
  bool fits = true;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    view_.extents[axis] = shape[axis];
    view_.strides[axis] = stride;
    fits = fits && !__builtin_mul_overflow(stride, shape[axis], &stride);
  }
  fits = fits && !__builtin_mul_overflow(stride, static_cast<std::int64_t>(size_of(type)), &stride);
  if (!fits || stride > most_bytes() - bytes_in_use) {
    throw error(fmt::format("a tensor of shape {} in {} needs more memory than this machine has",
                            shape_string(view_), to_string(type)));
  }
  auto const count = std::max<std::size_t>(bytes(), 1);
  memory_ = {static_cast<std::byte*>(::operator new(count, alignment)), release{stride}};
  bytes_in_use += stride;
  view_.data = memory_.get();
}

}  // namespace mambatile::evaluation
