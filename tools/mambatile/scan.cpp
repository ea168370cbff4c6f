#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <mambatile/mambatile.hpp>

#include "command.hpp"
#include "options.hpp"
#include "scan_run.hpp"
#include "text.hpp"

// mambatile scan: runs chunk_scan on the tensors of a file.

namespace mambatile::program {
namespace {

struct settings {
  std::filesystem::path input;
  std::filesystem::path output;
  std::string backend;
  std::optional<dtype> io;
  products math = products::accurate;
  int chunk_size = -1;
  int threads = 0;
  int repeat = 1;
  bool json = false;
};

nlohmann::ordered_json to_json(std::optional<compared> const& error) {
  if (!error) return nullptr;
  return {{"slice", error->error.slice},   {"slice_limit", error->limits.slice},
          {"peak", error->error.peak},     {"peak_limit", error->limits.peak},
          {"finite", error->error.finite}, {"pass", error->pass()}};
}

void print_error(char const* name, std::optional<compared> const& error) {
  if (!error) return;
  fmt::print("{:<14}{}: relative error {:.2e} (limit {:.1e}), peak {:.2e} (limit {:.1e}){}\n", name,
             error->pass() ? "pass" : "FAIL", error->error.slice, error->limits.slice,
             error->error.peak, error->limits.peak,
             error->error.finite ? "" : ", not all values are finite");
}

void print_json(settings const& chosen, evaluation::scan_case const& what, backend const& on,
                scan_run const& run) {
  auto const seconds = run.ms * 1e-3;
  nlohmann::ordered_json line = {
      {"file", chosen.input.string()},
      {"backend", on.name()},
      {"plan", run.plan},
      {"io", to_string(what.io())},
      {"state", to_string(what.state_type())},
      {"batch", run.problem.max_batch},
      {"seqlen", run.problem.max_seqlen},
      {"tokens", what.tokens()},
      {"repeat", chosen.repeat},
      {"ms", run.ms},
      {"ms_min", run.ms_min},
      {"tokens_per_s", static_cast<double>(what.tokens()) / seconds},
      {"workspace_bytes", run.workspace_bytes},
      {"unused_tensors", what.unused_tensors()},
      {"y", to_json(run.out_error)},
      {"final_states", to_json(run.final_states_error)},
      {"pass", run.has_expectation() ? nlohmann::ordered_json(run.pass()) : nullptr},
  };
  fmt::print("{}\n", json_text(line));
}

void print_text(settings const& chosen, evaluation::scan_case const& what, scan_run const& run) {
  auto const shape = [](const_tensor_view const& view) { return shape_string(view); };
  fmt::print("{:<14}{} {} {}, B {}\n", "input", printable(chosen.input.string()),
             to_string(what.io()), shape(what.inputs().x), shape(what.inputs().B));
  fmt::print("{:<14}{}\n", "plan", run.plan);
  fmt::print("{:<14}{:.3f} ms", "time", run.ms);
  if (chosen.repeat > 1) {
    fmt::print(" (median of {}, shortest {:.3f} ms)", chosen.repeat, run.ms_min);
  }
  fmt::print(", {} tokens/s, workspace {}\n",
             count_text(static_cast<double>(what.tokens()) / (run.ms * 1e-3)),
             bytes_text(static_cast<double>(run.workspace_bytes)));
  print_error("y", run.out_error);
  print_error("final_states", run.final_states_error);
  if (!run.has_expectation()) fmt::print("{:<14}none in the file, nothing compared\n", "expected");
  for (auto const& name : what.unused_tensors()) {
    fmt::print("{:<14}tensor '{}' has no part in a scan\n", "note", printable(name));
  }
  if (!chosen.output.empty())
    fmt::print("{:<14}{}\n", "written", printable(chosen.output.string()));
}

void write_result(std::filesystem::path const& path, backend const& on, scan_run const& run) {
  safetensors_writer writer;
  writer.add("y", run.out.view());
  writer.add("final_states", run.final_states.view());
  writer.set_metadata("backend", std::string(on.name()));
  writer.set_metadata("plan", run.plan);
  writer.set_metadata("mambatile", std::string(version()));
  writer.write(path);
}

exit_status scan(settings const& chosen) {
  auto const& on = chosen_backend(chosen.backend);
  evaluation::scan_case const what(chosen.input, chosen.io);
  auto options = what.options();
  options.math = chosen.math;
  options.threads = chosen.threads;
  if (chosen.chunk_size >= 0) options.chunk_size = chosen.chunk_size;
  auto const run = run_scan(what, on, options, chosen.repeat);
  if (!chosen.output.empty()) write_result(chosen.output, on, run);
  if (chosen.json) {
    print_json(chosen, what, on, run);
  } else {
    print_text(chosen, what, run);
  }
  return run.pass() ? success : beyond_tolerance;
}

}  // namespace

void add_scan_command(CLI::App& program, exit_status& status) {
  auto const chosen = std::make_shared<settings>();
  auto* const command = program.add_subcommand(
      "scan",
      "Run the scan on the tensors of a safetensors file and compare with its y and "
      "final_states, where it has them");
  command->add_option("input", chosen->input, "File with x, dt, A, B, C and the optional tensors")
      ->required()
      ->type_name("IN.safetensors");
  command->add_option("-o,--output", chosen->output, "Write y and final_states here")
      ->type_name("OUT.safetensors");
  add_backend_option(*command, chosen->backend);
  add_dtype_option(*command, "--io", "Convert x, z, B, C to this type (default: as stored)",
                   [chosen](dtype type) { chosen->io = type; });
  add_products_option(*command, chosen->math);
  command
      ->add_option("--chunk-size", chosen->chunk_size,
                   "Chunk to work in, 0 = the plan chooses (default: the file's hint)")
      ->check(at_least(0))
      ->type_name("Q");
  command->add_option("--threads", chosen->threads, "Threads on the CPU (default: all)")
      ->check(at_least(1))
      ->type_name("N");
  command->add_option("--repeat", chosen->repeat, "Timed calls")
      ->check(at_least(1))
      ->type_name("N");
  command->add_flag("--json", chosen->json, "Print one JSON object");
  command->callback([chosen, &status] { status = scan(*chosen); });
}

}  // namespace mambatile::program
