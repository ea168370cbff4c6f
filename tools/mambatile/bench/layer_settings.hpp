#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <mambatile/backend.hpp>
#include <mambatile/dtype.hpp>

#include "evaluation/scan_shapes.hpp"

// What the benchmarks of the operators around the scan have in common: shapes by model, and time
// held against a plain copy.

namespace mambatile::program {

struct layer_settings {
  std::vector<std::string> shapes = {"mamba2-130m"};
  std::vector<std::int64_t> seqlens = {2048};
  std::int64_t batch = 1;
  std::vector<int> threads;  ///< empty: all processors
  std::string backend;
  dtype io = dtype::f32;
  int rounds = 20;
  bool json = false;
};

/// Adds the options that set them.
void add_layer_options(CLI::App& command, layer_settings& chosen);

/// The shape of that name.
/// @throws CLI::ValidationError with the names there are.
[[nodiscard]] evaluation::scan_shape layer_shape(std::string const& name);

/// Tensors of the host are timed where they lie.
/// @throws unsupported for a backend on another device.
[[nodiscard]] backend const& host_backend(layer_settings const& chosen);

}  // namespace mambatile::program
