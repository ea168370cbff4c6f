#include "scan_states.hpp"

#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "scan_tiles.hpp"

namespace mambatile::kokkos {

TEST_CASE("states come back from panels as they went in, whatever the layout") {
  auto const headdim = GENERATE(1, 7, 16, 40, 80);
  auto const dstate = GENERATE(1, 5, 16, 33);
  struct strides {
    std::int64_t p, n;
  };
  auto const layout =
      GENERATE_COPY(strides{dstate + 2, 1}, strides{1, headdim + 3}, strides{3, 3 * headdim + 1});
  auto const first = GENERATE(0, 1) * std::int64_t{pack_width};
  if (first >= headdim) return;
  CAPTURE(headdim, dstate, layout.p, layout.n, first);

  auto const elements =
      static_cast<std::size_t>((headdim - 1) * layout.p + (dstate - 1) * layout.n + 1);
  std::vector<float> from(elements, -1.0F);
  std::vector<float> to(elements, -1.0F);
  for (std::int64_t p = 0; p < headdim; ++p) {
    for (std::int64_t n = 0; n < dstate; ++n) {
      from[static_cast<std::size_t>(p * layout.p + n * layout.n)] =
          static_cast<float>(1000 * p + n);
    }
  }
  headdim_range const columns{first, headdim};
  std::vector<float> panels(static_cast<std::size_t>(panel_elements(headdim - first, dstate)));
  load_state({from.data(), dtype::f32, layout.p, layout.n}, columns, dstate, panels.data());
  store_state(panels.data(), columns, dstate, {to.data(), dtype::f32, layout.p, layout.n});

  bool same = true;
  std::vector<float> want(elements, -1.0F);
  for (std::int64_t p = first; p < headdim; ++p) {
    for (std::int64_t n = 0; n < dstate; ++n) {
      want[static_cast<std::size_t>(p * layout.p + n * layout.n)] =
          static_cast<float>(1000 * p + n);
    }
  }
  same = to == want;
  CHECK(same);
  // (dstate, width) panels with headdim innermost.
  auto const width = panel_vectors(columns, first) * pack_width;
  CHECK(panels[static_cast<std::size_t>((dstate - 1) * width)] ==
        static_cast<float>(1000 * first + dstate - 1));
}

}  // namespace mambatile::kokkos
