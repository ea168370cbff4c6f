#include "checkpoint_info.hpp"

#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <mambatile/mambatile.hpp>

#include "options.hpp"
#include "text.hpp"

// mambatile info MODEL_DIR: what a checkpoint is, and what running it takes.

namespace mambatile::program {
namespace {

using json = nlohmann::ordered_json;

std::int64_t parameters_of(model_config const& config, model_weights const& weights) {
  auto count = weights.embedding.size() + weights.final_norm.size();
  if (!config.tied_head) count += weights.head.size();
  for (auto const& layer : weights.layers) {
    for (auto const& view : {layer.input_norm, layer.input_projection, layer.input_bias,
                             layer.conv_weight, layer.conv_bias, layer.dt_bias, layer.A, layer.D,
                             layer.gated_norm, layer.output_projection, layer.output_bias}) {
      if (view) count += view.size();
    }
  }
  return count;
}

// Infinity has no place in JSON.
json limit(float value) { return std::isinf(value) ? json("inf") : json(value); }

json architecture_of(model_config const& config) {
  json entry = {
      {"vocab_size", config.vocab_size},
      {"padded_vocab", config.padded_vocab},
      {"hidden_size", config.hidden_size},
      {"num_layers", config.num_layers},
      {"nheads", config.nheads},
      {"headdim", config.headdim},
      {"ngroups", config.ngroups},
      {"dstate", config.dstate},
      {"conv_width", config.conv_width},
      {"projection_bias", config.projection_bias},
      {"conv_bias", config.conv_bias},
      {"D_per_channel", config.D_per_channel},
      {"gated_norm", config.gated_norm},
      {"norm_before_gate", config.norm_before_gate},
      {"norm_group_size", config.norm_group_size},
      {"norm_eps", config.norm_eps},
      {"tied_head", config.tied_head},
      {"residual_in_f32", config.residual_in_f32},
      {"dt_limit", {limit(config.dt_limit[0]), limit(config.dt_limit[1])}},
      {"end_of_sequence", config.end_of_sequence},
  };
  entry["begin_of_sequence"] = config.begin_of_sequence ? json(*config.begin_of_sequence) : json();
  return entry;
}

std::vector<std::string> lines_of(std::string const& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

json describe_checkpoint(std::filesystem::path const& folder, std::string const& backend_name,
                         model_options const& options) {
  std::vector<std::string> remarks;
  auto const stored =
      checkpoint::open(folder, [&](std::string_view remark) { remarks.emplace_back(remark); });
  json info = {{"checkpoint", folder.string()},
               {"architecture", architecture_of(stored.config())},
               {"parameters", parameters_of(stored.config(), stored.weights())},
               {"weight_type", to_string(stored.weight_type())},
               {"file_bytes", stored.file_bytes()},
               {"remarks", remarks}};
  model const runs(stored, chosen_backend(backend_name), options);
  info["runs"] = {{"backend", runs.served_by().name()},
                  {"device", to_string(runs.where())},
                  {"io", to_string(options.io)},
                  {"state", to_string(options.state)},
                  {"bytes_per_sequence", runs.bytes_per_sequence()},
                  {"workspace_bytes", runs.workspace_bytes()},
                  {"plans", lines_of(runs.description())}};
  return info;
}

void print_checkpoint(json const& info) {
  auto const number = [](json const& value) { return value.get<std::int64_t>(); };
  auto const bytes = [](json const& value) { return bytes_text(value.get<double>()); };
  auto const& is = info["architecture"];
  auto const& runs = info["runs"];
  auto const text = [](json const& value) { return printable(value.get<std::string>()); };
  fmt::print("checkpoint    {}\n", text(info["checkpoint"]));
  fmt::print("size          {} parameters as {}, {}\n",
             count_text(info["parameters"].get<double>()), info["weight_type"].get<std::string>(),
             bytes(info["file_bytes"]));
  fmt::print("model         {} layers, hidden size {}, vocabulary {}{}, {} head\n",
             number(is["num_layers"]), number(is["hidden_size"]), number(is["vocab_size"]),
             is["padded_vocab"] == is["vocab_size"]
                 ? ""
                 : fmt::format(" (padded to {})", number(is["padded_vocab"])),
             is["tied_head"].get<bool>() ? "tied" : "untied");
  fmt::print("block         {} heads of {}, {} group{}, state size {}, convolution of {}, {}\n",
             number(is["nheads"]), number(is["headdim"]), number(is["ngroups"]),
             is["ngroups"] == 1 ? "" : "s", number(is["dstate"]), number(is["conv_width"]),
             !is["gated_norm"].get<bool>()        ? "no norm at the gate"
             : is["norm_before_gate"].get<bool>() ? "norm, then gate"
                                                  : "gate, then norm");
  fmt::print("steps         dt limited to {}, ends at ids {}\n", is["dt_limit"].dump(),
             is["end_of_sequence"].dump());
  for (auto const& remark : info["remarks"]) {
    fmt::print("remark        {}\n", text(remark));
  }
  fmt::print("runs on       {} ({}), activations {}, states {}\n",
             runs["backend"].get<std::string>(), runs["device"].get<std::string>(),
             runs["io"].get<std::string>(), runs["state"].get<std::string>());
  fmt::print("memory        {} a sequence, workspace {}, weights used where they lie in the file\n",
             bytes(runs["bytes_per_sequence"]), bytes(runs["workspace_bytes"]));
  for (auto const& plan : runs["plans"]) fmt::print("  {}\n", text(plan));
}

}  // namespace mambatile::program
