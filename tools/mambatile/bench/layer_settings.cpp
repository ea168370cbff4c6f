#include "bench/layer_settings.hpp"

#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <mambatile/errors.hpp>

#include "bench/shapes.hpp"
#include "options.hpp"
#include "text.hpp"

namespace mambatile::program {

void add_layer_options(CLI::App& command, layer_settings& chosen) {
  command
      .add_option("--shape", chosen.shapes,
                  "Model (mamba2-130m, mamba2-2.7b, nemotron-h-8b, ...) or sizes (H24P64G1N128)")
      ->delimiter(',')
      ->type_name("NAME,...");
  command.add_option("--batch", chosen.batches, "Rows (default: 1)")
      ->delimiter(',')
      ->check(at_least(1))
      ->type_name("B,...");
  command.add_option("--threads", chosen.threads, "Threads (default: all)")
      ->delimiter(',')
      ->check(at_least(1))
      ->type_name("N,...");
  add_backend_option(command, chosen.backend);
  command.add_option("--rounds", chosen.rounds, "Timed rounds (default: 20)")
      ->check(at_least(1))
      ->type_name("N");
  command.add_flag("--json", chosen.json, "Print one JSON object a line");
}

bench_record start_record(layer_settings const& chosen, backend const& on,
                          std::string_view operator_name, layer_cell const& cell) {
  bench_record record;
  record.operator_name = operator_name;
  record.backend = on.name();
  record.shape = cell.shape.name;
  record.batch = cell.batch;
  record.seqlen = cell.seqlen;
  record.threads = cell.threads;
  record.io = chosen.io;
  return record;
}

namespace {

// All of a cell's numbers must be addressable; how many the machine can hold is another question.
void check_size(layer_cell const& cell) {
  auto const numbers = static_cast<double>(cell.batch) * static_cast<double>(cell.seqlen) *
                       static_cast<double>(cell.shape.nheads * cell.shape.headdim +
                                           2 * cell.shape.ngroups * cell.shape.dstate);
  if (numbers <= 0x1p58) return;
  throw CLI::ValidationError(
      fmt::format("{} rows of {} tokens of {} are more than can be addressed", cell.batch,
                  cell.seqlen, cell.shape.name));
}

}  // namespace

void bench_layers(layer_settings chosen, char const* what, std::string const& footnote,
                  std::function<bench_record(layer_cell const&)> const& time_cell) {
  std::vector<evaluation::scan_shape> shapes;
  for (auto const& name : chosen.shapes) shapes.push_back(bench_shape(name));
  if (chosen.threads.empty()) chosen.threads.push_back(available_processors());
  progress shown(what, static_cast<std::int64_t>(shapes.size() * chosen.batches.size() *
                                                 chosen.seqlens.size() * chosen.threads.size()));
  std::vector<bench_record> records;
  for (auto const& shape : shapes) {
    for (auto const batch : chosen.batches) {
      for (auto const seqlen : chosen.seqlens) {
        for (auto const threads : chosen.threads) {
          layer_cell const cell{shape, batch, seqlen, threads};
          check_size(cell);
          records.push_back(time_cell(cell));
          if (chosen.json) print_json(records.back());
          shown.step();
        }
      }
    }
  }
  if (chosen.json) return;
  print_table(records);
  fmt::print("{} ms: median of {} interleaved rounds.\n", footnote, chosen.rounds);
}

backend const& host_backend(layer_settings const& chosen) {
  auto const& on = chosen_backend(chosen.backend);
  if (on.kind() != device_kind::host) {
    throw unsupported(
        fmt::format("bench: the {} backend's tensors are not on the host", on.name()));
  }
  return on;
}

}  // namespace mambatile::program
