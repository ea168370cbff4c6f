#include "scan_states.hpp"

#include <algorithm>
#include <cstdint>

#include "convert.hpp"
#include "scan_pack.hpp"
#include "scan_tiles.hpp"
#include "transpose.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

// Calls visit(column, width, packed, stride) for each pack of columns: its first column, how many
// count, and where its rows lie in the panels.
template <class Float, class Visit>
void for_each_pack(headdim_range const& columns, std::int64_t dstate, Float* panels,
                   Visit const& visit) {
  for (std::int64_t begin = columns.begin; begin < columns.end; begin += panel_width) {
    int const vectors = panel_vectors(columns, begin);
    std::int64_t const stride = std::int64_t{vectors} * pack_width;
    for (int vector = 0; vector < vectors; ++vector) {
      std::int64_t const column = begin + vector * pack_width;
      visit(column, std::min<std::int64_t>(columns.end - column, pack_width),
            panels + vector * pack_width, stride);
    }
    panels += stride * dstate;
  }
}

template <class Element>
void load_pack(Element const* from, state_matrix const& matrix, std::int64_t width,
               std::int64_t dstate, float* to, std::int64_t stride) noexcept {
  if (matrix.headdim_stride == 1) {
    for (std::int64_t n = 0; n < dstate; ++n) {
      store(to + n * stride, load_up_to(from + n * matrix.dstate_stride, width));
    }
  } else if (matrix.dstate_stride == 1) {
    for (std::int64_t n = 0; n < dstate; n += pack_width) {
      pack square[pack_width];
      for (int p = 0; p < pack_width; ++p) {
        square[p] =
            p < width ? load_up_to(from + p * matrix.headdim_stride + n, dstate - n) : pack(0.0F);
      }
      transpose(square);
      for (int i = 0; i < pack_width; ++i) {
        if (n + i < dstate) store(to + (n + i) * stride, square[i]);
      }
    }
  } else {
    for (std::int64_t n = 0; n < dstate; ++n) {
      for (std::int64_t p = 0; p < pack_width; ++p) {
        to[n * stride + p] =
            p < width
                ? static_cast<float>(from[p * matrix.headdim_stride + n * matrix.dstate_stride])
                : 0.0F;
      }
    }
  }
}

template <class Element>
void store_pack(float const* from, std::int64_t stride, std::int64_t width, std::int64_t dstate,
                Element* to, state_matrix const& matrix) noexcept {
  if (matrix.headdim_stride == 1) {
    for (std::int64_t n = 0; n < dstate; ++n) {
      store_up_to(to + n * matrix.dstate_stride, load(from + n * stride), width);
    }
  } else if (matrix.dstate_stride == 1) {
    for (std::int64_t n = 0; n < dstate; n += pack_width) {
      pack square[pack_width];
      for (int i = 0; i < pack_width; ++i) {
        square[i] = n + i < dstate ? load(from + (n + i) * stride) : pack(0.0F);
      }
      transpose(square);
      for (int p = 0; p < pack_width; ++p) {
        if (p < width) store_up_to(to + p * matrix.headdim_stride + n, square[p], dstate - n);
      }
    }
  } else {
    for (std::int64_t n = 0; n < dstate; ++n) {
      for (std::int64_t p = 0; p < width; ++p) {
        to[p * matrix.headdim_stride + n * matrix.dstate_stride] = Element(from[n * stride + p]);
      }
    }
  }
}

}  // namespace

int panel_vectors(headdim_range const& columns, std::int64_t begin) noexcept {
  std::int64_t const packs = (columns.end - begin + pack_width - 1) / pack_width;
  return static_cast<int>(std::min<std::int64_t>(packs, tuning.tile_vectors));
}

std::int64_t panel_elements(std::int64_t columns, std::int64_t dstate) noexcept {
  return (columns + pack_width - 1) / pack_width * pack_width * dstate;
}

void load_state(state_matrix const& from, headdim_range const& columns, std::int64_t dstate,
                float* panels) noexcept {
  visit_type(from.type, [&]<class Element>(Element const*) {
    for_each_pack(columns, dstate, panels,
                  [&](std::int64_t column, std::int64_t width, float* to, std::int64_t stride) {
                    load_pack(static_cast<Element const*>(from.data) + column * from.headdim_stride,
                              from, width, dstate, to, stride);
                  });
  });
}

void store_state(float const* panels, headdim_range const& columns, std::int64_t dstate,
                 state_matrix const& to) noexcept {
  visit_type(to.type, [&]<class Element>(Element const*) {
    for_each_pack(
        columns, dstate, panels,
        [&](std::int64_t column, std::int64_t width, float const* from, std::int64_t stride) {
          store_pack(from, stride, width, dstate,
                     static_cast<Element*>(to.data) + column * to.headdim_stride, to);
        });
  });
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
