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

// The number of rows is known at compile time, so that the compiler makes shuffles of the loops.
template <int Rows, class Element>
void deinterleave(Element const* __restrict__ from, std::int64_t count, float* __restrict__ to,
                  std::int64_t pitch) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    for (int row = 0; row < Rows; ++row) {
      to[row * pitch + i] = static_cast<float>(from[i * Rows + row]);
    }
  }
}

template <int Rows, class Element>
void interleave(float const* __restrict__ from, std::int64_t pitch, std::int64_t count,
                Element* __restrict__ to) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    for (int row = 0; row < Rows; ++row) to[i * Rows + row] = Element(from[row * pitch + i]);
  }
}

// Rows that lie one in the other: element i of all of them, then element i + 1.
bool are_interleaved(std::int64_t row_stride, std::int64_t stride, std::int64_t rows) noexcept {
  return row_stride == 1 && stride == rows && rows >= 2 && rows <= 4;
}

}  // namespace

void stage_row(const_tensor_view const& from, std::int64_t offset, std::int64_t stride,
               std::int64_t count, float* to) noexcept {
  visit_type(from.type, [&]<class Element>(Element const*) {
    auto const* const data = static_cast<Element const*>(from.data) + offset;
    if (stride == 1) {
      widen_dense(data, count, to);
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(data[i * stride]);
    }
  });
}

void stage_rows(const_tensor_view const& from, std::int64_t offset, std::int64_t row_stride,
                std::int64_t stride, std::int64_t rows, std::int64_t count, float* to,
                std::int64_t pitch) noexcept {
  if (are_interleaved(row_stride, stride, rows)) {
    visit_type(from.type, [&]<class Element>(Element const*) {
      auto const* const data = static_cast<Element const*>(from.data) + offset;
      switch (rows) {
        case 2: deinterleave<2>(data, count, to, pitch); break;
        case 3: deinterleave<3>(data, count, to, pitch); break;
        default: deinterleave<4>(data, count, to, pitch); break;
      }
    });
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    stage_row(from, offset + row * row_stride, stride, count, to + row * pitch);
  }
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
  if (are_interleaved(row_stride, stride, rows)) {
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
