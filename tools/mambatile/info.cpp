#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <mambatile/mambatile.hpp>

#include "checkpoint_info.hpp"
#include "command.hpp"
#include "cpu_features.hpp"
#include "operator_limits.hpp"
#include "options.hpp"
#include "text.hpp"

// mambatile info: what this build can do on this machine, or what a checkpoint is.

namespace mambatile::program {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array known_backends = {"cuda", "kokkos", "reference"};
json describe(char const* name) {
  json entry = {{"name", name}, {"compiled", false}};
  for (auto const* on : compiled_backends()) {
    if (on->name() != name) continue;
    entry["compiled"] = true;
    auto const available = on->is_available();
    entry["available"] = available.ok;
    if (!available) {
      entry["reason"] = available.reason;
      continue;
    }
    entry["devices"] = on->device_count();
    entry["capabilities"] = on->capabilities();
    entry["preferred_state_layout"] = to_string(on->preferred_state_layout());
    entry["operators"] = operator_limits(*on);
  }
  return entry;
}

json gather() {
  auto const cpu = describe_cpu();
  json info = {{"version", version()}};
  try {
    info["default_backend"] = default_backend().name();
  } catch (backend_unavailable const& problem) {
    info["default_backend"] = nullptr;
    info["default_backend_reason"] = problem.what();
  }
  info["cpu"] = {
      {"model", cpu.model}, {"processors", available_processors()}, {"features", cpu.features}};
  for (auto const* name : known_backends) info["backends"].push_back(describe(name));
  return info;
}

std::string words(json const& list) {
  return fmt::format("{}", fmt::join(list.get<std::vector<std::string>>(), " "));
}

// "io f32 bf16 f16; headdim_max any; ..."
std::string limits_text(json const& limits) {
  if (limits.contains("reason")) return "no: " + limits["reason"].get<std::string>();
  std::string text;
  for (auto const& [name, value] : limits.items()) {
    if (!text.empty()) text += "; ";
    text += name + ' ';
    text += value.is_array()    ? words(value)
            : value.is_string() ? value.get<std::string>()
                                : value.dump();
  }
  return text;
}

void print_backend(json const& entry) {
  auto const name = entry["name"].get<std::string>();
  if (!entry["compiled"].get<bool>()) {
    fmt::print("  {}: not compiled in\n", name);
    return;
  }
  if (!entry["available"].get<bool>()) {
    fmt::print("  {}: not available: {}\n", name, entry["reason"].get<std::string>());
    return;
  }
  fmt::print("  {}: {}; {} device{}; prefers states with {}\n", name,
             entry["capabilities"].get<std::string>(), entry["devices"].get<int>(),
             entry["devices"] == 1 ? "" : "s", entry["preferred_state_layout"].get<std::string>());
  for (auto const& [operator_name, limits] : entry["operators"].items()) {
    fmt::print("    {}: {}\n", operator_name, limits_text(limits));
  }
}

void print(json const& info) {
  fmt::print("mambatile {}\n", info["version"].get<std::string>());
  fmt::print("cpu: {}, {} processors\n", printable(info["cpu"]["model"].get<std::string>()),
             info["cpu"]["processors"].get<int>());
  fmt::print("cpu features: {}\n", words(info["cpu"]["features"]));
  fmt::print("default backend: {}\n", info["default_backend"].is_null()
                                          ? info["default_backend_reason"].get<std::string>()
                                          : info["default_backend"].get<std::string>());
  fmt::print("backends:\n");
  for (auto const& entry : info["backends"]) print_backend(entry);
}

}  // namespace

void add_info_command(CLI::App& program) {
  struct settings {
    bool as_json = false;
    std::filesystem::path checkpoint;
    std::string backend;
    model_options options;
  };
  auto const chosen = std::make_shared<settings>();
  auto* const command = program.add_subcommand(
      "info",
      "Say what is compiled in, what is available and why not, and each operator's limits; or what "
      "a checkpoint is and takes");
  auto* const checkpoint = command->add_option(
      "checkpoint", chosen->checkpoint, "Directory with config.json and weights to tell about");
  command->add_flag("--json", chosen->as_json, "Print one JSON object");
  add_backend_option(*command, chosen->backend);
  add_model_options(*command, chosen->options);
  // Without a checkpoint they would mean nothing.
  for (auto const* name : {"--backend", "--io", "--state", "--threads"}) {
    command->get_option(name)->needs(checkpoint);
  }
  command->callback([chosen] {
    bool const of_checkpoint = !chosen->checkpoint.empty();
    auto const info =
        of_checkpoint ? describe_checkpoint(chosen->checkpoint, chosen->backend, chosen->options)
                      : gather();
    if (chosen->as_json) {
      fmt::print("{}\n", json_text(info));
    } else if (of_checkpoint) {
      print_checkpoint(info);
    } else {
      print(info);
    }
  });
}

}  // namespace mambatile::program
