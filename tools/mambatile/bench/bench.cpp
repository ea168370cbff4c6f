#include "bench/bench.hpp"

#include "command.hpp"

namespace mambatile::program {

void add_bench_command(CLI::App& program) {
  auto* const bench = program.add_subcommand(
      "bench", "Time an operator: median and minimum of interleaved rounds, share of the machine");
  bench->require_subcommand(1);
  add_bench_scan_command(*bench);
  add_bench_conv_command(*bench);
  add_bench_norm_command(*bench);
  add_bench_update_command(*bench);
}

}  // namespace mambatile::program
