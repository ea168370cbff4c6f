#include "bench/shapes.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

namespace mambatile::program {

evaluation::scan_shape bench_shape(std::string const& name) {
  if (auto const* known = evaluation::find_scan_shape(name)) return *known;
  evaluation::scan_shape shape{name};
  int length = 0;
  // Sizes of one's own.
  if (std::sscanf(name.c_str(), "H%ldP%ldG%ldN%ld%n", &shape.nheads, &shape.headdim, &shape.ngroups,
                  &shape.dstate, &length) == 4 &&
      static_cast<std::size_t>(length) == name.size() &&
      std::min({shape.nheads, shape.headdim, shape.ngroups, shape.dstate}) >= 1) {
    if (shape.nheads % shape.ngroups != 0) {
      throw CLI::ValidationError("--shape", fmt::format("{}: {} heads do not divide into {} groups",
                                                        name, shape.nheads, shape.ngroups));
    }
    return shape;
  }
  std::vector<std::string_view> names;
  for (auto const& each : evaluation::scan_shapes) names.push_back(each.name);
  throw CLI::ValidationError("--shape", fmt::format("{} is neither like H24P64G1N128 nor one of {}",
                                                    name, fmt::join(names, ", ")));
}

}  // namespace mambatile::program
