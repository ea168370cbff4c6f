#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/checkpoint.hpp>
#include <mambatile/errors.hpp>

#include "model/config_json.hpp"
#include "model/config_reader.hpp"

namespace mambatile {
inline namespace v0 {
namespace {

using detail::config_reader;

// Sizes that are made of two keys; each key alone is below 2^31, so the products do not overflow.
void check_sizes(model_config const& config, std::string const& name) {
  constexpr std::int64_t highest = std::numeric_limits<std::int32_t>::max() / 8;
  auto const bounded = [&](char const* what, std::int64_t one, std::int64_t other) {
    if (one * other > highest) {
      throw file_error(
          fmt::format("{}: {} = {} * {} is beyond {}", name, what, one, other, highest));
    }
  };
  bounded("heads * channels of a head", config.nheads, config.headdim);
  bounded("groups * states", config.ngroups, config.dstate);
  // Groups that divide the heads divide the channels, which the norm's groups are made of.
  if (config.nheads % config.ngroups != 0) {
    throw file_error(fmt::format("{}: {} heads are not a multiple of {} groups", name,
                                 config.nheads, config.ngroups));
  }
}

// transformers, model_type "mamba2" (Codestral-Mamba among them).
model_config from_transformers(config_reader const& keys) {
  model_config config;
  config.vocab_size = keys.integer("vocab_size", 1);
  config.padded_vocab = config.vocab_size;
  config.hidden_size = keys.integer("hidden_size", 1);
  config.num_layers = keys.integer("num_hidden_layers", 0);
  config.nheads = keys.integer("num_heads", 1);
  config.headdim = keys.integer("head_dim", 1);
  config.ngroups = keys.integer("n_groups", 1);
  config.dstate = keys.integer("state_size", 1);
  config.conv_width = keys.integer("conv_kernel", 1);
  config.projection_bias = keys.boolean_or("use_bias", false);
  config.conv_bias = keys.boolean_or("use_conv_bias", true);
  config.norm_group_size = config.inner_size() / config.ngroups;
  config.tied_head = keys.boolean_or("tie_word_embeddings", false);
  config.residual_in_f32 = keys.boolean_or("residual_in_fp32", true);
  config.norm_eps = keys.positive_or("layer_norm_epsilon", 1e-5F);
  config.dt_limit = keys.limits_or("time_step_limit", config.dt_limit);
  config.chunk_size = static_cast<int>(keys.integer_or("chunk_size", 1, 256));
  if (auto const act = keys.text_or("hidden_act", "silu"); act != "silu" && act != "swish") {
    keys.refuse("hidden_act", "only silu (swish) is known");
  }
  if (!keys.boolean_or("rms_norm", true)) keys.refuse("rms_norm", "only true is known");
  config.end_of_sequence = keys.token_ids("eos_token_id", config.vocab_size);
  if (auto const begin = keys.token_ids("bos_token_id", config.vocab_size); !begin.empty()) {
    config.begin_of_sequence = begin.front();
  }
  return config;
}

model_config from_state_spaces(config_reader const& keys, std::string const& name) {
  auto const block = keys.nested("ssm_cfg");
  model_config config;
  config.vocab_size = keys.integer("vocab_size", 1);
  auto const multiple = keys.integer_or("pad_vocab_size_multiple", 1, 8);
  config.padded_vocab = (config.vocab_size + multiple - 1) / multiple * multiple;
  config.hidden_size = keys.integer("d_model", 1);
  config.num_layers = keys.integer("n_layer", 0);
  if (keys.integer_or("d_intermediate", 0, 0) != 0) {
    keys.refuse("d_intermediate", "only 0 (no feed-forward layers) is known");
  }
  if (!keys.is_empty_list_or_absent("attn_layer_idx")) {
    keys.refuse("attn_layer_idx", "attention layers are not part of a Mamba-2 model");
  }
  if (!keys.boolean_or("rms_norm", true)) keys.refuse("rms_norm", "only true is known");
  // The original code's default for a missing layer name is the first Mamba.
  if (auto const layer = block.text_or("layer", "Mamba1"); layer != "Mamba2") {
    block.refuse("layer", "only \"Mamba2\" is known");
  }
  config.dstate = block.integer_or("d_state", 1, 128);
  config.conv_width = block.integer_or("d_conv", 1, 4);
  config.headdim = block.integer_or("headdim", 1, 64);
  config.ngroups = block.integer_or("ngroups", 1, 1);
  auto const inner = block.integer_or("expand", 1, 2) * config.hidden_size;
  if (block.integer_or("d_ssm", 1, inner) != inner) {
    block.refuse("d_ssm", fmt::format("only expand * d_model = {} is known", inner));
  }
  if (inner % config.headdim != 0) {
    throw file_error(
        fmt::format("{}: expand * d_model = {} is not a multiple of ssm_cfg.headdim = "
                    "{}",
                    name, inner, config.headdim));
  }
  config.nheads = inner / config.headdim;
  if (inner % config.ngroups != 0) {
    throw file_error(
        fmt::format("{}: expand * d_model = {} is not a multiple of ssm_cfg.ngroups = "
                    "{}",
                    name, inner, config.ngroups));
  }
  config.D_per_channel = block.boolean_or("D_has_hdim", false);
  config.gated_norm = block.boolean_or("rmsnorm", true);
  config.norm_before_gate = block.boolean_or("norm_before_gate", false);
  config.norm_group_size = inner / config.ngroups;
  config.dt_limit = block.limits_or("dt_limit", config.dt_limit);
  config.projection_bias = block.boolean_or("bias", false);
  config.conv_bias = block.boolean_or("conv_bias", true);
  config.chunk_size = static_cast<int>(block.integer_or("chunk_size", 1, 256));
  if (auto const act = block.text_or("activation", "swish"); act != "silu" && act != "swish") {
    block.refuse("activation", "only silu (swish) is known");
  }
  config.residual_in_f32 = keys.boolean_or("residual_in_fp32", true);
  config.tied_head = keys.boolean_or("tie_embeddings", true);
  return config;
}

}  // namespace

model_config parse_model_config(std::string_view text, std::string const& name) {
  config_reader const keys(detail::parse_config_json(text, name), name);
  model_config config;
  if (keys.has("model_type")) {
    if (keys.text_or("model_type", "") != "mamba2") {
      keys.refuse("model_type", "only \"mamba2\" is known");
    }
    config = from_transformers(keys);
  } else if (keys.has("d_model")) {
    config = from_state_spaces(keys, name);
  } else {
    keys.refuse("model_type", "it must be \"mamba2\", or the file must have d_model");
  }
  check_sizes(config, name);
  return config;
}

}  // namespace v0
}  // namespace mambatile
