// The side-by-side: every cell that has a goal, ours and ggml's in turn, in one process.

#include <cstdio>
#include <exception>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "benchmark/machine.hpp"
#include "cells.hpp"
#include "mambatile/version.hpp"

namespace mambatile::benchmark {
namespace {

using group_function = std::function<void(settings const&, report&)>;

std::vector<std::pair<std::string, group_function>> const& groups() {
  static std::vector<std::pair<std::string, group_function>> const all = {
      {"prefill", measure_prefill},   {"short", measure_short_prefill},
      {"shapes", measure_odd_shapes}, {"packed", measure_packed},
      {"accuracy", measure_accuracy}, {"decode", measure_decode},
      {"mixed", measure_mixed},       {"conv", measure_conv},
      {"norm", measure_norm},
  };
  return all;
}

void describe_machine(settings const& with, std::string const& commit, report& to) {
  std::map<std::string, double> numbers;
  for (int const threads : with.threads) {
    auto const rates = measure_memory_rates(threads);
    numbers[fmt::format("fma_peak_gflops_{}", threads)] = fma_peak_gflops(threads);
    numbers[fmt::format("in_place_gbytes_{}", threads)] = rates.in_place;
    numbers[fmt::format("copy_gbytes_{}", threads)] = rates.copy;
  }
  to.machine(
      {{"machine", machine_text()},
       {"backend", fmt::format("{}, {}", with.served_by->name(), with.served_by->capabilities())},
       {"commit", commit},
       {"peer", ggml_peer() != nullptr
                    ? ggml_peer()->description()
                    : "none: this program was built without ggml, ratios to it count as 0"}},
      numbers);
}

int run(int argc, char** argv) {
  CLI::App program("Times mambatile beside ggml on every cell that has a goal");
  settings with;
  std::string backend_name;
  std::string json_path;
  std::string commit = "unknown";
  std::vector<std::string> only;
  std::vector<std::string> shapes;
  bool strict = false;
  std::vector<std::string> names;
  for (auto const& [name, function] : groups()) names.push_back(name);
  program.add_option("--backend", backend_name, "Backend to time; the default one if not given");
  program.add_option("--threads", with.threads, "Numbers of threads")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_option("--only", only, "Groups of cells to measure; all if not given")
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  program.add_option("--shape", shapes, "Shapes to measure; all if not given")->delimiter(',');
  program.add_option("--seconds", with.seconds, "About what the timing of a cell may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_option("--json", json_path, "Also write JSON lines to this file");
  program.add_option("--commit", commit, "What is measured, for the record");
  program.add_flag("--strict", strict,
                   "Exit with 1 where a goal is missed, not only where a cell fails");
  CLI11_PARSE(program, argc, argv);

  with.served_by = backend_name.empty() ? &default_backend() : &find_backend(backend_name);
  with.shapes = {shapes.begin(), shapes.end()};
  report to(json_path);
  describe_machine(with, commit, to);
  for (auto const& [name, function] : groups()) {
    if (only.empty() || std::ranges::find(only, name) != only.end()) function(with, to);
  }
  to.summary();
  return to.unmeasured() > 0 || (strict && !to.all_met()) ? 1 : 0;
}

}  // namespace
}  // namespace mambatile::benchmark

int main(int argc, char** argv) try {
  return mambatile::benchmark::run(argc, argv);
} catch (std::exception const& error) {
  std::fputs(fmt::format("mambatile_bench: {}\n", error.what()).c_str(), stderr);
  return 3;
}
