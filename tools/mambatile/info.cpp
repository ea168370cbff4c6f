#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <mambatile/mambatile.hpp>

#include "command.hpp"
#include "cpu_features.hpp"
#include "options.hpp"
#include "text.hpp"

// mambatile info: what this build can do on this machine.

namespace mambatile::program {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array known_backends = {"cuda", "kokkos", "reference"};
constexpr std::array floating_types = {dtype::f32, dtype::bf16, dtype::f16};

scan_problem plain_scan() {
  scan_problem problem;
  problem.max_batch = 1;
  problem.max_seqlen = 64;
  problem.nheads = 1;
  problem.headdim = 64;
  problem.dstate = 128;
  problem.has_final_states = true;
  return problem;
}

// The largest power of two, up to 2^20, that `set` may put into an otherwise plain problem.
template <class Set>
std::int64_t largest(backend const& on, Set const& set) {
  constexpr std::int64_t beyond_question = std::int64_t{1} << 20U;
  std::int64_t found = 0;
  for (std::int64_t value = 1; value <= beyond_question; value *= 2) {
    auto problem = plain_scan();
    set(problem, value);
    if (on.supports(problem)) found = value;
  }
  return found;
}

template <class Set>
bool allows(backend const& on, Set const& set) {
  auto problem = plain_scan();
  set(problem);
  return on.supports(problem).ok;
}

// Everything here is asked of the backend's own predicate.
json limits_of_scan(backend const& on) {
  if (auto const plain = on.supports(plain_scan()); !plain) return {{"reason", plain.reason}};
  json io = json::array();
  json state = json::array();
  for (auto type : floating_types) {
    if (allows(on, [&](auto& problem) { problem.io = type; })) io.push_back(to_string(type));
    if (allows(on, [&](auto& problem) { problem.state = type; })) state.push_back(to_string(type));
  }
  json packs = json::array();
  for (auto pack : {packing::dense, packing::cu_seqlens, packing::seq_idx}) {
    bool const allowed = allows(on, [&](auto& problem) {
      problem.pack = pack;
      problem.max_sequences = pack == packing::cu_seqlens ? 1 : 0;
    });
    if (allowed) packs.push_back(to_string(pack));
  }
  std::int64_t every = 0;
  for (std::int64_t k = 64; k >= 1; k /= 2) {
    if (allows(on, [&](auto& problem) { problem.intermediate_every = k; })) every = k;
  }
  json products_allowed = json::array();
  for (auto math : {products::accurate, products::tf32}) {
    if (allows(on, [&](auto& problem) { problem.math = math; })) {
      products_allowed.push_back(to_string(math));
    }
  }
  return {
      {"io", io},
      {"state", state},
      {"packing", packs},
      {"products", products_allowed},
      {"headdim_max", largest(on, [](auto& p, std::int64_t value) { p.headdim = value; })},
      {"dstate_max", largest(on, [](auto& p, std::int64_t value) { p.dstate = value; })},
      {"intermediate_every_multiple_of", every},
  };
}

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
    entry["operators"] = {{"chunk_scan", limits_of_scan(*on)}};
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

std::string limit(json const& value) {
  constexpr std::int64_t beyond_question = std::int64_t{1} << 20U;
  auto const number = value.get<std::int64_t>();
  return number >= beyond_question ? "any" : fmt::format("up to {}", number);
}

void print_scan_limits(json const& scan) {
  if (scan.contains("reason")) {
    fmt::print("    chunk_scan: no: {}\n", scan["reason"].get<std::string>());
    return;
  }
  auto const every = scan["intermediate_every_multiple_of"].get<int>();
  fmt::print(
      "    chunk_scan: io {}; states {}; packing {}; products {}; headdim {}; dstate {}; "
      "snapshots {}\n",
      words(scan["io"]), words(scan["state"]), words(scan["packing"]), words(scan["products"]),
      limit(scan["headdim_max"]), limit(scan["dstate_max"]),
      every == 0   ? "no"
      : every == 1 ? "after every k tokens, any k"
                   : fmt::format("after every k tokens, k a multiple of {}", every));
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
  print_scan_limits(entry["operators"]["chunk_scan"]);
}

void print(json const& info) {
  fmt::print("mambatile {}\n", info["version"].get<std::string>());
  fmt::print("cpu: {}, {} processors\n", info["cpu"]["model"].get<std::string>(),
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
  auto const as_json = std::make_shared<bool>(false);
  auto* const command = program.add_subcommand(
      "info", "Say what is compiled in, what is available and why not, and each operator's limits");
  command->add_flag("--json", *as_json, "Print one JSON object");
  command->callback([as_json] {
    auto const info = gather();
    if (*as_json) {
      fmt::print("{}\n", info.dump());
    } else {
      print(info);
    }
  });
}

}  // namespace mambatile::program
