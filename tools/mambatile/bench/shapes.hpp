#pragma once

#include <string>

#include "evaluation/scan_shapes.hpp"

namespace mambatile::program {

/// The shape that `--shape` names: a model's, or sizes like H24P64G1N128. `name` outlives the
/// result.
[[nodiscard]] evaluation::scan_shape bench_shape(std::string const& name);

}  // namespace mambatile::program
