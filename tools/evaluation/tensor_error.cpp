#include "evaluation/tensor_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mambatile::evaluation {

tensor_error tensor_error::combined_with(tensor_error const& other) const noexcept {
  return {std::max(slice, other.slice), std::max(peak, other.peak), finite && other.finite};
}

namespace {

// Half a unit in the last place of a number of this size in a 16-bit type; 0 for others.
double half_unit(dtype stored, double size) noexcept {
  int exponent = 0;
  std::frexp(size, &exponent);  // size = [1/2, 1) * 2^exponent
  switch (stored) {
    case dtype::bf16: return std::ldexp(1.0, exponent - 9);
    case dtype::f16: return std::ldexp(1.0, std::max(exponent, -13) - 12);
    default: return 0.0;
  }
}

}  // namespace

void error_accumulator::add(std::int64_t slice, double got, double want) noexcept {
  auto& sums = slices_[static_cast<std::size_t>(slice)];
  ++sums.count;
  if (!std::isfinite(got) || !std::isfinite(want)) {
    bool const same = got == want || (std::isnan(got) && std::isnan(want));
    finite_ = finite_ && same;
    return;
  }
  double difference = std::fabs(got - want);
  if (stored_ == dtype::f16 && std::fabs(want) < 0x1p-14) {
    difference = std::max(0.0, difference - 0x1p-25);  // half a step of the subnormal numbers
  }
  sums.difference += difference * difference;
  sums.want += want * want;
  auto const rounding = half_unit(stored_, std::max(std::fabs(got), std::fabs(want)));
  sums.largest = std::max(sums.largest, difference - rounding);
}

tensor_error error_accumulator::result() const noexcept {
  tensor_error error;
  error.finite = finite_;
  for (auto const& sums : slices_) {
    if (sums.difference == 0) continue;
    if (sums.want == 0) {
      error.slice = error.peak = std::numeric_limits<double>::infinity();
      continue;
    }
    error.slice = std::max(error.slice, std::sqrt(sums.difference / sums.want));
    error.peak =
        std::max(error.peak, sums.largest / std::sqrt(sums.want / static_cast<double>(sums.count)));
  }
  return error;
}

double element(const_tensor_view const& view, std::int64_t offset) noexcept {
  switch (view.type) {
    case dtype::bf16: return static_cast<double>(static_cast<bfloat16 const*>(view.data)[offset]);
    case dtype::f16: return static_cast<double>(static_cast<float16 const*>(view.data)[offset]);
    case dtype::i32: return static_cast<std::int32_t const*>(view.data)[offset];
    case dtype::f32: break;
  }
  return static_cast<double>(static_cast<float const*>(view.data)[offset]);
}

tensor_error compare(const_tensor_view const& got, const_tensor_view const& want,
                     unsigned slice_axes) {
  std::int64_t slices = 1;
  std::array<std::int64_t, max_rank> slice_strides = {};
  for (int axis = got.rank - 1; axis >= 0; --axis) {
    if ((slice_axes >> static_cast<unsigned>(axis) & 1U) == 0) continue;
    slice_strides[static_cast<std::size_t>(axis)] = slices;
    slices *= got.extent(axis);
  }
  error_accumulator errors(slices, got.type);
  auto const walk = [&](auto const& self, int axis, std::int64_t got_offset,
                        std::int64_t want_offset, std::int64_t slice) -> void {
    if (axis == got.rank) {
      errors.add(slice, element(got, got_offset), element(want, want_offset));
      return;
    }
    for (std::int64_t index = 0; index < got.extent(axis); ++index) {
      self(self, axis + 1, got_offset + index * got.stride(axis),
           want_offset + index * want.stride(axis),
           slice + index * slice_strides[static_cast<std::size_t>(axis)]);
    }
  };
  walk(walk, 0, 0, 0, 0);
  return errors.result();
}

}  // namespace mambatile::evaluation
