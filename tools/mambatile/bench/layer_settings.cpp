#include "bench/layer_settings.hpp"

#include <new>
#include <string_view>

#include <fmt/format.h>

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

// Where products of sizes are no numbers, no machine has the memory either.
void check_size(layer_cell const& cell) {
  auto const& shape = cell.shape;
  auto const channels =
      static_cast<double>(shape.nheads) * static_cast<double>(shape.headdim) +
      2.0 * static_cast<double>(shape.ngroups) * static_cast<double>(shape.dstate);
  if (static_cast<double>(cell.batch) * static_cast<double>(cell.seqlen) * channels > 0x1p58) {
    throw std::bad_alloc();
  }
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
