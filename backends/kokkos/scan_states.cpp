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

// Calls visit(first column, vectors, panel) for each panel.
template <class Float, class Visit>
void for_each_panel(headdim_range const& columns, std::int64_t dstate, Float* panels,
                    Visit const& visit) {
  for (std::int64_t begin = columns.begin; begin < columns.end; begin += panel_width) {
    int const vectors = panel_vectors(columns, begin);
    visit(begin, vectors, panels);
    panels += std::int64_t{vectors} * pack_width * dstate;
  }
}

// Where both sides have headdim innermost: row by row.
template <class Element>
void load_rows(Element const* from, std::int64_t from_stride, std::int64_t used,
               std::int64_t dstate, float* to, std::int64_t stride) noexcept {
  for (std::int64_t n = 0; n < dstate; ++n) {
    for (std::int64_t p = 0; p < used; p += pack_width) {
      store(to + n * stride + p, load_up_to(from + n * from_stride + p, used - p));
    }
  }
}
template <class Element>
void store_rows(float const* from, std::int64_t stride, std::int64_t used, std::int64_t dstate,
                Element* to, std::int64_t to_stride) noexcept {
  for (std::int64_t n = 0; n < dstate; ++n) {
    for (std::int64_t p = 0; p < used; p += pack_width) {
      store_up_to(to + n * to_stride + p, load(from + n * stride + p), used - p);
    }
  }
}

template <class Element>
void load_pack(Element const* from, state_matrix const& matrix, std::int64_t width,
               std::int64_t dstate, float* to, std::int64_t stride) noexcept {
  if (matrix.dstate_stride == 1) {
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
  if (matrix.dstate_stride == 1) {
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
    auto const* data = static_cast<Element const*>(from.data);
    for_each_panel(columns, dstate, panels, [&](std::int64_t begin, int vectors, float* panel) {
      std::int64_t const stride = std::int64_t{vectors} * pack_width;
      auto const used = std::min(stride, columns.end - begin);
      auto const* source = data + begin * from.headdim_stride;
      if (from.headdim_stride == 1) {
        load_rows(source, from.dstate_stride, used, dstate, panel, stride);
        return;
      }
      for (std::int64_t p = 0; p < used; p += pack_width) {
        load_pack(source + p * from.headdim_stride, from,
                  std::min<std::int64_t>(used - p, pack_width), dstate, panel + p, stride);
      }
    });
  });
}

void store_state(float const* panels, headdim_range const& columns, std::int64_t dstate,
                 state_matrix const& to) noexcept {
  visit_type(to.type, [&]<class Element>(Element const*) {
    auto* data = static_cast<Element*>(to.data);
    for_each_panel(columns, dstate, panels,
                   [&](std::int64_t begin, int vectors, float const* panel) {
                     std::int64_t const stride = std::int64_t{vectors} * pack_width;
                     auto const used = std::min(stride, columns.end - begin);
                     auto* target = data + begin * to.headdim_stride;
                     if (to.headdim_stride == 1) {
                       store_rows(panel, stride, used, dstate, target, to.dstate_stride);
                       return;
                     }
                     for (std::int64_t p = 0; p < used; p += pack_width) {
                       store_pack(panel + p, stride, std::min<std::int64_t>(used - p, pack_width),
                                  dstate, target + p * to.headdim_stride, to);
                     }
                   });
  });
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
