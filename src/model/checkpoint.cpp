#include <mambatile/checkpoint.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <mambatile/errors.hpp>

#include "model/text_file.hpp"
#include "model/weight_files.hpp"

namespace mambatile {
inline namespace v0 {
namespace {

float unchanged(float value) { return value; }
float decay_rate(float A_log) { return -std::exp(A_log); }

layer_weights load_layer(detail::weight_files& files, model_config const& config,
                         std::string const& prefix) {
  auto const mixer = prefix + "mixer.";
  layer_weights layer;
  layer.input_norm = files.weight(prefix + "norm.weight", {config.hidden_size});
  layer.input_projection =
      files.weight(mixer + "in_proj.weight", {config.projection_rows(), config.hidden_size});
  layer.conv_weight =
      files.weight(mixer + "conv1d.weight", {config.conv_channels(), config.conv_width});
  layer.dt_bias = files.parameter(mixer + "dt_bias", {config.nheads}, unchanged);
  layer.A = files.parameter(mixer + "A_log", {config.nheads}, decay_rate);
  if (config.D_per_channel) {
    // Stored flat, (nheads * headdim).
    layer.D = files.parameter(mixer + "D", {config.inner_size()}, unchanged);
    layer.D.rank = 2;
    layer.D.extents = {config.nheads, config.headdim};
    layer.D.strides = {config.headdim, 1};
  } else {
    layer.D = files.parameter(mixer + "D", {config.nheads}, unchanged);
  }
  layer.output_projection =
      files.weight(mixer + "out_proj.weight", {config.hidden_size, config.inner_size()});
  if (config.projection_bias) {
    layer.input_bias = files.weight(mixer + "in_proj.bias", {config.projection_rows()});
    layer.output_bias = files.weight(mixer + "out_proj.bias", {config.hidden_size});
  }
  if (config.conv_bias) {
    layer.conv_bias = files.weight(mixer + "conv1d.bias", {config.conv_channels()});
  }
  if (config.gated_norm) {
    layer.gated_norm = files.weight(mixer + "norm.weight", {config.inner_size()});
  }
  return layer;
}

model_weights load_weights(detail::weight_files& files, model_config const& config,
                           checkpoint_remark const& remark) {
  // transformers says "embeddings", the original code "embedding".
  std::string const plural = "backbone.embeddings.weight";
  std::string const embedding = files.has(plural) ? plural : "backbone.embedding.weight";
  model_weights weights;
  weights.embedding = files.weight(embedding, {config.padded_vocab, config.hidden_size});
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    weights.layers.push_back(load_layer(files, config, fmt::format("backbone.layers.{}.", i)));
  }
  weights.final_norm = files.weight("backbone.norm_f.weight", {config.hidden_size});
  weights.head = config.tied_head
                     ? weights.embedding
                     : files.weight("lm_head.weight", {config.padded_vocab, config.hidden_size});
  if (remark) {
    for (auto const& name : files.unused()) {
      bool const head = name == "lm_head.weight";
      remark(fmt::format("{} is not used{}", name,
                         head ? ": the configuration ties the head to the embedding" : ""));
    }
  }
  return weights;
}

}  // namespace

struct checkpoint::storage {
  model_config config;
  detail::weight_files files;
  model_weights weights;

  storage(std::filesystem::path const& directory, checkpoint_remark const& remark)
      : config(parse_model_config(detail::read_text_file(directory / "config.json"),
                                  (directory / "config.json").string())),
        files(directory),
        weights(load_weights(files, config, remark)) {}
};

checkpoint::checkpoint(std::shared_ptr<storage const> shared) noexcept
    : storage_(std::move(shared)) {}

checkpoint checkpoint::open(std::filesystem::path const& directory,
                            checkpoint_remark const& remark) {
  return checkpoint(std::make_shared<storage const>(directory, remark));
}

model_config const& checkpoint::config() const noexcept { return storage_->config; }
model_weights const& checkpoint::weights() const noexcept { return storage_->weights; }
std::int64_t checkpoint::file_bytes() const noexcept { return storage_->files.bytes(); }

dtype checkpoint::weight_type() const noexcept {
  auto const& layers = storage_->weights.layers;
  return layers.empty() ? storage_->weights.embedding.type : layers.front().input_projection.type;
}

}  // namespace v0
}  // namespace mambatile
