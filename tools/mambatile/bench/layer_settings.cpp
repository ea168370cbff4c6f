#include "bench/layer_settings.hpp"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <mambatile/errors.hpp>

#include "options.hpp"

namespace mambatile::program {

void add_layer_options(CLI::App& command, layer_settings& chosen) {
  command.add_option("--shape", chosen.shapes, "Model (mamba2-130m, mamba2-2.7b, ...)")
      ->delimiter(',')
      ->type_name("NAME,...");
  command.add_option("--seqlen", chosen.seqlens, "Tokens a row (default: 2048)")
      ->delimiter(',')
      ->check(at_least(1))
      ->type_name("T,...");
  command.add_option("--batch", chosen.batch, "Rows (default: 1)")
      ->check(at_least(1))
      ->type_name("B");
  command.add_option("--threads", chosen.threads, "Threads (default: all)")
      ->delimiter(',')
      ->check(at_least(1))
      ->type_name("N,...");
  add_backend_option(command, chosen.backend);
  add_dtype_option(command, "--io", "Type of activations (default: f32)",
                   [&chosen](dtype type) { chosen.io = type; });
  command.add_option("--rounds", chosen.rounds, "Timed rounds (default: 20)")
      ->check(at_least(1))
      ->type_name("N");
  command.add_flag("--json", chosen.json, "Print one JSON object a line");
}

evaluation::scan_shape layer_shape(std::string const& name) {
  if (auto const* known = evaluation::find_scan_shape(name)) return *known;
  std::vector<std::string_view> names;
  for (auto const& each : evaluation::scan_shapes) names.push_back(each.name);
  throw CLI::ValidationError("--shape",
                             fmt::format("{} is not one of {}", name, fmt::join(names, ", ")));
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
