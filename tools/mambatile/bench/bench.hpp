#pragma once

#include <CLI/CLI.hpp>

// The operators that `mambatile bench` times, each in a file of its own.

namespace mambatile::program {

void add_bench_scan_command(CLI::App& bench);
void add_bench_conv_command(CLI::App& bench);
void add_bench_norm_command(CLI::App& bench);
void add_bench_update_command(CLI::App& bench);

}  // namespace mambatile::program
