#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <mambatile/mambatile.hpp>

#include "command.hpp"
#include "options.hpp"
#include "scan_run.hpp"
#include "text.hpp"

// mambatile demo: runs the scans of several files on every backend that is available and prints one
// table.

namespace mambatile::program {
namespace {

struct settings {
  std::vector<std::filesystem::path> inputs;
  std::optional<dtype> io;
  int repeat = 5;
};

std::vector<std::filesystem::path> files_of(std::vector<std::filesystem::path> const& inputs) {
  std::vector<std::filesystem::path> files;
  for (auto const& input : inputs) {
    if (!std::filesystem::is_directory(input)) {
      files.push_back(input);
      continue;
    }
    auto const first = static_cast<std::ptrdiff_t>(files.size());
    for (auto const& entry : std::filesystem::directory_iterator(input)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    }
    if (files.begin() + first == files.end()) {
      throw file_error(input.string() + ": holds no .safetensors file");
    }
    std::sort(files.begin() + first, files.end());
  }
  return files;
}

// The larger of the two errors.
std::string error_text(scan_run const& run) {
  evaluation::tensor_error worst;
  for (auto const& error : {run.out_error, run.final_states_error}) {
    if (error) worst = worst.combined_with(error->error);
  }
  return worst.finite ? fmt::format("{:.1e}", worst.slice) : "not finite";
}

exit_status demo(settings const& chosen) {
  auto const files = files_of(chosen.inputs);
  table results({"case", "io", "backend", "plan", "ms", "error", "pass"});
  results.align_right({4, 5});
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;
  for (auto const* on : compiled_backends()) {
    if (auto const available = on->is_available(); !available) {
      fmt::print("{}: not available: {}\n", on->name(), available.reason);
    }
  }
  std::int64_t refusals = 0;
  progress shown("demo", static_cast<std::int64_t>(files.size()));
  for (auto const& file : files) {
    std::string const name = file.stem().string();
    auto const refuse = [&](std::string const& io, std::string const& on, char const* reason) {
      ++refusals;
      results.add({name, io, on, reason, "-", "-", "NO"});
    };
    try {
      evaluation::scan_case const what(file, chosen.io);
      std::string const io(to_string(what.io()));
      for (auto const* on : compiled_backends()) {
        if (!on->is_available()) continue;
        std::string const backend_name(on->name());
        try {
          auto const run = run_scan(what, *on, what.options(), chosen.repeat);
          ++(run.pass() ? passed : failed);
          results.add({name, io, backend_name, run.plan, fmt::format("{:.3f}", run.ms),
                       run.has_expectation() ? error_text(run) : "-", run.pass() ? "yes" : "NO"});
        } catch (unsupported const& reason) {
          ++skipped;
          results.add({name, io, backend_name, reason.what(), "-", "-", "-"});
        } catch (error const& reason) {
          refuse(io, backend_name, reason.what());
        } catch (std::bad_alloc const&) {
          refuse(io, backend_name, "not enough memory");
        }
      }
    } catch (error const& reason) {
      refuse("-", "-", reason.what());
    } catch (std::bad_alloc const&) {
      refuse("-", "-", "not enough memory");
    }
    shown.step();
  }
  fmt::print("{}{} passed, {} failed, {} skipped\n", results.text(), passed, failed + refusals,
             skipped);
  return failed != 0 ? beyond_tolerance : refusals != 0 ? refused : success;
}

}  // namespace

void add_demo_command(CLI::App& program, exit_status& status) {
  auto const chosen = std::make_shared<settings>();
  auto* const command = program.add_subcommand(
      "demo", "Run the scans of several files on every available backend and print one table");
  command->add_option("inputs", chosen->inputs, "Files, or folders of them")
      ->required()
      ->type_name("FILE|FOLDER");
  add_dtype_option(*command, "--io", "Convert x, z, B, C to this type (default: as stored)",
                   [chosen](dtype type) { chosen->io = type; });
  command->add_option("--repeat", chosen->repeat, "Timed calls each")
      ->check(at_least(1))
      ->type_name("N");
  command->callback([chosen, &status] { status = demo(*chosen); });
}

}  // namespace mambatile::program
