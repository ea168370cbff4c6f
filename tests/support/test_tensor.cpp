#include "support/test_tensor.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "support/tested_backend.hpp"

namespace mambatile::testing {
namespace {

struct placement {
  std::vector<std::int64_t> strides;
  std::int64_t begin = 0;
  std::int64_t elements = 0;
};

placement place(std::vector<std::int64_t> const& shape, arrangement lies) {
  auto const rank = shape.size();
  std::vector<std::size_t> order(rank);  // from the slowest axis to the fastest
  for (std::size_t axis = 0; axis < rank; ++axis) order[axis] = axis;
  if (lies == arrangement::swapped && rank > 2) std::swap(order[0], order[1]);
  if (lies == arrangement::transposed && rank > 1) std::swap(order[rank - 2], order[rank - 1]);
  bool const is_dense = lies == arrangement::packed || lies == arrangement::transposed;

  placement result;
  result.strides.resize(rank);
  result.begin = is_dense ? 0 : 3;
  std::int64_t span = 1;
  for (std::size_t position = rank; position-- > 0;) {
    auto const axis = order[position];
    result.strides[axis] = span;
    span *= std::max<std::int64_t>(shape[axis], 1);
    // Odd gaps, so that rows are not aligned to anything.
    if (!is_dense && rank > 1) span += 1 + 2 * static_cast<std::int64_t>(position % 2);
  }
  result.elements = result.begin + span;
  if (lies == arrangement::reversed) {
    for (std::size_t axis = 0; axis + 1 < rank; ++axis) {
      result.begin += result.strides[axis] * std::max<std::int64_t>(shape[axis] - 1, 0);
      result.strides[axis] = -result.strides[axis];
    }
  }
  return result;
}

template <class Void>
basic_tensor_view<Void> rebase(tensor_view const& view, void const* from, Void* to, device where) {
  auto const distance =
      static_cast<std::byte const*>(view.data) - static_cast<std::byte const*>(from);
  using bytes = std::conditional_t<std::is_const_v<Void>, std::byte const, std::byte>;
  basic_tensor_view<Void> moved{nullptr, view.type, where, view.rank, view.extents, view.strides};
  moved.data = static_cast<bytes*>(to) + distance;
  return moved;
}

}  // namespace

char const* to_string(arrangement value) noexcept {
  switch (value) {
    case arrangement::packed: return "packed";
    case arrangement::padded: return "padded";
    case arrangement::swapped: return "swapped";
    case arrangement::reversed: return "reversed";
    case arrangement::transposed: return "transposed";
  }
  return "unknown";
}

test_tensor::test_tensor(dtype type, std::vector<std::int64_t> const& shape, arrangement lies) {
  auto const placed = place(shape, lies);
  *this = test_tensor(
      std::make_shared<guarded_memory>(static_cast<std::size_t>(placed.elements) * size_of(type)),
      type, shape, placed.strides, placed.begin);
}

test_tensor::test_tensor(std::shared_ptr<guarded_memory> memory, dtype type,
                         std::vector<std::int64_t> const& shape,
                         std::vector<std::int64_t> const& strides, std::int64_t begin)
    : memory_(std::move(memory)) {
  view_.type = type;
  view_.where = tested_device();
  view_.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), view_.extents.begin());
  std::copy(strides.begin(), strides.end(), view_.strides.begin());
  view_.data =
      static_cast<std::byte*>(memory_->data()) + begin * static_cast<std::int64_t>(size_of(type));
}

test_tensor test_tensor::copy_of(const_tensor_view const& host) {
  if (!host) return {};
  std::vector<std::int64_t> const shape(host.extents.begin(), host.extents.begin() + host.rank);
  test_tensor copy(host.type, shape);
  auto* to = static_cast<std::byte*>(copy.image().data);
  auto const element = size_of(host.type);
  for_each_offset(host, [&](std::int64_t offset) {
    std::memcpy(
        to, static_cast<std::byte const*>(host.data) + offset * static_cast<std::int64_t>(element),
        element);
    to += element;
  });
  return copy;
}

tensor_view test_tensor::image() const noexcept {
  if (!memory_) return {};
  return rebase<void>(view_, memory_->data(), memory_->image(), device{});
}

const_tensor_view test_tensor::result() const noexcept {
  if (!memory_) return {};
  return rebase<void const>(view_, memory_->data(), memory_->result(), device{});
}

double test_tensor::get(const_tensor_view const& host, std::int64_t offset) noexcept {
  switch (host.type) {
    case dtype::f32: return static_cast<double>(static_cast<float const*>(host.data)[offset]);
    case dtype::bf16:
      return static_cast<double>(float{static_cast<bfloat16 const*>(host.data)[offset]});
    case dtype::f16:
      return static_cast<double>(float{static_cast<float16 const*>(host.data)[offset]});
    case dtype::i32: break;
  }
  return static_cast<std::int32_t const*>(host.data)[offset];
}

void test_tensor::set(tensor_view const& host, std::int64_t offset, double value) noexcept {
  switch (host.type) {
    case dtype::f32: static_cast<float*>(host.data)[offset] = static_cast<float>(value); return;
    case dtype::bf16:
      static_cast<bfloat16*>(host.data)[offset] = bfloat16(static_cast<float>(value));
      return;
    case dtype::f16:
      static_cast<float16*>(host.data)[offset] = float16(static_cast<float>(value));
      return;
    case dtype::i32:
      static_cast<std::int32_t*>(host.data)[offset] = static_cast<std::int32_t>(value);
      return;
  }
}

std::vector<double> values(const_tensor_view const& host) {
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(host.size()));
  for_each_offset(host,
                  [&](std::int64_t offset) { result.push_back(test_tensor::get(host, offset)); });
  return result;
}

std::vector<std::uint32_t> bits(const_tensor_view const& host) {
  std::vector<std::uint32_t> result;
  result.reserve(static_cast<std::size_t>(host.size()));
  auto const element = size_of(host.type);
  for_each_offset(host, [&](std::int64_t offset) {
    std::uint32_t word = 0;
    std::memcpy(
        &word,
        static_cast<std::byte const*>(host.data) + offset * static_cast<std::int64_t>(element),
        element);
    result.push_back(word);
  });
  return result;
}

}  // namespace mambatile::testing
