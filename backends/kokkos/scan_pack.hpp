#pragma once

#include <algorithm>
#include <cstdint>

#include "convert.hpp"
#include "transpose.hpp"
#include "vector_math.hpp"

// Rows of x, B, C, z in any type, to and from the f32 scratch of the scan. Rows in scratch are
// whole packs; lanes beyond `width` are 0.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// Up to a pack of elements; 0 in the lanes beyond `count`.
template <class Element>
[[nodiscard]] inline pack load_up_to(Element const* from, std::int64_t count) noexcept {
  return count >= pack_width ? load(from) : load_first(from, static_cast<int>(count));
}
/// Stores the lanes before `count`, at most a pack.
template <class Element>
inline void store_up_to(Element* to, pack const& value, std::int64_t count) noexcept {
  if (count >= pack_width) {
    store(to, value);
  } else {
    store_first(to, value, static_cast<int>(count));
  }
}

template <class Element>
inline void pack_rows(Element const* from, std::int64_t from_stride, std::int64_t rows,
                      std::int64_t width, float* to, std::int64_t to_stride) noexcept {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < width; i += pack_width) {
      store(to + row * to_stride + i, load_up_to(from + row * from_stride + i, width - i));
    }
  }
}

/// Each row times its weight. What lies `ahead` elements further is fetched meanwhile.
template <class Element>
inline void pack_weighted(Element const* from, std::int64_t from_stride, std::int64_t rows,
                          std::int64_t width, std::int64_t ahead, float const* weights, float* to,
                          std::int64_t to_stride) noexcept {
  for (std::int64_t row = 0; row < rows; ++row) {
    pack const weight(weights[row]);
    for (std::int64_t i = 0; i < width; i += pack_width) {
      __builtin_prefetch(from + row * from_stride + i + ahead, 0, 2);
      store(to + row * to_stride + i, weight * load_up_to(from + row * from_stride + i, width - i));
    }
  }
}

/// to[i * to_stride + row] = from[row * from_stride + i]; rows beyond `rows` up to a pack are 0.
template <class Element>
inline void pack_transposed(Element const* from, std::int64_t from_stride, std::int64_t rows,
                            std::int64_t width, float* to, std::int64_t to_stride) noexcept {
  for (std::int64_t row = 0; row < rows; row += pack_width) {
    for (std::int64_t i = 0; i < width; i += pack_width) {
      pack square[pack_width];
      for (int r = 0; r < pack_width; ++r) {
        square[r] =
            row + r < rows ? load_up_to(from + (row + r) * from_stride + i, width - i) : pack(0.0F);
      }
      transpose(square);
      auto const columns = std::min<std::int64_t>(width - i, pack_width);
      for (int column = 0; column < columns; ++column) {
        store(to + (i + column) * to_stride + row, square[column]);
      }
    }
  }
}

struct finishing {
  float const* tile;
  std::int64_t tile_stride;
  float const* skip;  ///< null = none
};

/// out = (tile's row + skip * x) * silu(z); z may be null.
template <class Element>
inline void finish_row(finishing const& from, int row, Element const* x, Element const* z,
                       Element* out, std::int64_t width) noexcept {
  float const* const sums = from.tile + row * from.tile_stride;
  for (std::int64_t i = 0; i < width; i += pack_width) {
    pack value = load(sums + i);
    auto const left = width - i;
    if (from.skip != nullptr) value = fma(load(from.skip + i), load_up_to(x + i, left), value);
    if (z != nullptr) value = value * silu(load_up_to(z + i, left));
    store_up_to(out + i, value, left);
  }
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
