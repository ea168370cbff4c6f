#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <mambatile/backend.hpp>
#include <mambatile/dtype.hpp>

#include "bench/record.hpp"
#include "benchmark/interleaved.hpp"
#include "evaluation/scan_shapes.hpp"

// What the benchmarks of the operators around the scan have in common: every combination of shapes,
// batches, lengths and threads, and time held against a plain loop over memory.

namespace mambatile::program {

struct layer_settings {
  std::vector<std::string> shapes = {"mamba2-130m"};
  std::vector<std::int64_t> batches = {1};
  std::vector<std::int64_t> seqlens;
  std::vector<int> threads;  ///< empty: all processors
  std::string backend;
  dtype io = dtype::f32;
  int rounds = 20;
  bool json = false;

  [[nodiscard]] benchmark::interleaving timing() const {
    return {.least_rounds = rounds, .most_rounds = rounds};
  }
};

/// Adds the options that set them, but for the lengths.
void add_layer_options(CLI::App& command, layer_settings& chosen);

/// One call to be timed.
struct layer_cell {
  evaluation::scan_shape shape;
  std::int64_t batch;
  std::int64_t seqlen;
  int threads;
};

/// A record of that cell with what was not measured yet left out.
[[nodiscard]] bench_record start_record(layer_settings const& chosen, backend const& on,
                                        std::string_view operator_name, layer_cell const& cell);

/// Times and prints every combination; `footnote` explains the table.
void bench_layers(layer_settings chosen, char const* what, std::string const& footnote,
                  std::function<bench_record(layer_cell const&)> const& time_cell);

/// The backend, which is one of the host: tensors are timed where they lie.
/// @throws unsupported for a backend on another device.
[[nodiscard]] backend const& host_backend(layer_settings const& chosen);

}  // namespace mambatile::program
