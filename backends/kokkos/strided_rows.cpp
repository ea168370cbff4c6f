#include "strided_rows.hpp"

#include <algorithm>
#include <cstdint>

#include "convert.hpp"
#include "simd.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

template <class Element>
void widen_dense(Element const* __restrict__ from, std::int64_t count,
                 float* __restrict__ to) noexcept {
  std::int64_t i = 0;
  for (; i + pack_width <= count; i += pack_width) store(to + i, load(from + i));
  for (; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

// A stride known at compile time is one that the compiler can make shuffles of.
template <int Stride, class Element>
void widen_strided(Element const* __restrict__ from, std::int64_t count,
                   float* __restrict__ to) noexcept {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i * Stride]);
}

template <int Rows, class Element>
void interleave(float const* __restrict__ from, std::int64_t pitch, std::int64_t count,
                Element* __restrict__ to) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    for (int row = 0; row < Rows; ++row) to[i * Rows + row] = Element(from[row * pitch + i]);
  }
}

}  // namespace

void stage_row(const_tensor_view const& from, std::int64_t offset, std::int64_t stride,
               std::int64_t count, float* to) noexcept {
  visit_type(from.type, [&]<class Element>(Element const*) {
    auto const* const data = static_cast<Element const*>(from.data) + offset;
    switch (stride) {
      case 1: widen_dense(data, count, to); break;
      case 2: widen_strided<2>(data, count, to); break;
      case 3: widen_strided<3>(data, count, to); break;
      case 4: widen_strided<4>(data, count, to); break;
      default:
        for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(data[i * stride]);
    }
  });
}

void unstage_row(tensor_view const& to, std::int64_t offset, std::int64_t stride,
                 std::int64_t count, float const* from) noexcept {
  visit_type(to.type, [&]<class Element>(Element const*) {
    auto* const data = static_cast<Element*>(to.data) + offset;
    if (stride == 1) {
      std::int64_t i = 0;
      for (; i + pack_width <= count; i += pack_width) store(data + i, load(from + i));
      for (; i < count; ++i) data[i] = Element(from[i]);
    } else {
      for (std::int64_t i = 0; i < count; ++i) data[i * stride] = Element(from[i]);
    }
  });
}

void unstage_rows(tensor_view const& to, std::int64_t offset, std::int64_t row_stride,
                  std::int64_t stride, std::int64_t rows, std::int64_t count, float const* from,
                  std::int64_t pitch) noexcept {
  if (row_stride == 1 && stride == rows && rows >= 2 && rows <= 4) {
    visit_type(to.type, [&]<class Element>(Element const*) {
      auto* const data = static_cast<Element*>(to.data) + offset;
      switch (rows) {
        case 2: interleave<2>(from, pitch, count, data); break;
        case 3: interleave<3>(from, pitch, count, data); break;
        default: interleave<4>(from, pitch, count, data); break;
      }
    });
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    unstage_row(to, offset + row * row_stride, stride, count, from + row * pitch);
  }
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
