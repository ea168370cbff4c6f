#pragma once

#include <CLI/CLI.hpp>

// The program's subcommands. Each lives in a file of its own and adds itself to the parser; its
// callback does the work and throws what the library throws.

namespace mambatile::program {

enum exit_status : int {
  success = 0,
  beyond_tolerance = 1,  ///< a result differs from what the file expects
  usage_error = 2,       ///< the command line is not understood
  refused = 3,           ///< a file, an argument or a backend is refused; the message says why
  internal_error = 4,
};

void add_info_command(CLI::App& program);
void add_scan_command(CLI::App& program, exit_status& status);
void add_demo_command(CLI::App& program, exit_status& status);
void add_generate_command(CLI::App& program);
void add_make_checkpoint_command(CLI::App& program);
void add_bench_command(CLI::App& program);

}  // namespace mambatile::program
