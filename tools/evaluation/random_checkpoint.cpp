#include "evaluation/random_checkpoint.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <mambatile/checkpoint.hpp>
#include <mambatile/errors.hpp>
#include <mambatile/safetensors.hpp>

#include "evaluation/random_numbers.hpp"

namespace mambatile::evaluation {
namespace {

enum class spread {
  symmetric,    // uniform in [-bound, bound)
  around_one,   // uniform in [0.5, 1.5)
  A_log,        // log of a uniform number in [1, 16)
  softplus_dt,  // softplus gives a log-uniform number in [1e-3, 0.1)
};

struct tensor_recipe {
  std::string name;
  std::vector<std::int64_t> shape;
  spread how = spread::symmetric;
  float bound = 0;

  [[nodiscard]] std::int64_t size() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
};

std::vector<tensor_recipe> recipes_of(checkpoint_shape const& shape) {
  auto const hidden = shape.hidden_size;
  auto const inner = shape.nheads * shape.headdim;
  auto const channels = inner + 2 * shape.ngroups * shape.dstate;
  auto const within = [](std::int64_t inputs) {
    return 1.0F / std::sqrt(static_cast<float>(inputs));
  };
  std::vector<tensor_recipe> recipes;
  recipes.push_back({"backbone.embeddings.weight", {shape.vocab_size, hidden}, {}, 1.0F});
  for (std::int64_t layer = 0; layer < shape.num_layers; ++layer) {
    auto const block = fmt::format("backbone.layers.{}.", layer);
    auto const mixer = block + "mixer.";
    recipes.push_back({block + "norm.weight", {hidden}, spread::around_one});
    recipes.push_back(
        {mixer + "in_proj.weight", {inner + channels + shape.nheads, hidden}, {}, within(hidden)});
    recipes.push_back(
        {mixer + "conv1d.weight", {channels, 1, shape.conv_width}, {}, within(shape.conv_width)});
    recipes.push_back({mixer + "conv1d.bias", {channels}, {}, within(shape.conv_width)});
    recipes.push_back({mixer + "dt_bias", {shape.nheads}, spread::softplus_dt});
    recipes.push_back({mixer + "A_log", {shape.nheads}, spread::A_log});
    recipes.push_back({mixer + "D", {shape.nheads}, spread::around_one});
    recipes.push_back({mixer + "norm.weight", {inner}, spread::around_one});
    recipes.push_back({mixer + "out_proj.weight", {hidden, inner}, {}, within(inner)});
  }
  recipes.push_back({"backbone.norm_f.weight", {hidden}, spread::around_one});
  if (!shape.tied_head) {
    recipes.push_back({"lm_head.weight", {shape.vocab_size, hidden}, {}, within(hidden)});
  }
  return recipes;
}

float number(tensor_recipe const& recipe, random_numbers& numbers) noexcept {
  auto const uniform = static_cast<float>(numbers.bits() >> 40U) * 0x1p-24F;
  switch (recipe.how) {
    case spread::symmetric: return recipe.bound * (2.0F * uniform - 1.0F);
    case spread::around_one: return 0.5F + uniform;
    case spread::A_log: return std::log(1.0F + 15.0F * uniform);
    case spread::softplus_dt: {
      auto const dt = std::exp(std::log(1e-3F) + std::log(100.0F) * uniform);
      return std::log(std::expm1(dt));
    }
  }
  return 0;
}

template <class Element>
safetensors_producer producer_of(tensor_recipe recipe, std::uint64_t seed,
                                 std::function<void(std::size_t)> done) {
  return [recipe = std::move(recipe), seed, done = std::move(done)](std::uint64_t offset,
                                                                    std::span<std::byte> piece) {
    auto* const values = reinterpret_cast<Element*>(piece.data());
    random_numbers numbers(seed, recipe.name);
    numbers.skip(offset / sizeof(Element));
    for (std::size_t i = 0; i < piece.size() / sizeof(Element); ++i) {
      values[i] = Element(number(recipe, numbers));
    }
    done(piece.size());
  };
}

safetensors_producer producer_of(tensor_recipe const& recipe, checkpoint_storage const& storage,
                                 std::function<void(std::size_t)> done) {
  switch (storage.type) {
    case dtype::bf16: return producer_of<bfloat16>(recipe, storage.seed, std::move(done));
    case dtype::f16: return producer_of<float16>(recipe, storage.seed, std::move(done));
    default: return producer_of<float>(recipe, storage.seed, std::move(done));
  }
}

void write_text(std::filesystem::path const& path, std::string const& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << '\n';
  if (!file.flush()) throw file_error(path.string() + ": cannot be written");
}

// "expand": heads * channels over the hidden size, which transformers multiplies back and compares.
nlohmann::ordered_json expansion_of(checkpoint_shape const& shape) {
  auto const inner = shape.nheads * shape.headdim;
  if (inner % shape.hidden_size == 0) return inner / shape.hidden_size;
  auto const hidden = static_cast<double>(shape.hidden_size);
  auto const ratio = static_cast<double>(inner) / hidden;
  if (ratio * hidden != static_cast<double>(inner)) {
    throw invalid_argument(fmt::format(
        "heads * channels of a head = {} * {} over a hidden size of {} has no exact \"expand\" in "
        "config.json; choose a hidden size that divides the product",
        shape.nheads, shape.headdim, shape.hidden_size));
  }
  return ratio;
}

// All but "expand". dt is not limited: "time_step_limit" is left out, for JSON has no infinity.
nlohmann::ordered_json config_of(checkpoint_shape const& shape, dtype type) {
  return {
      {"architectures", {"Mamba2ForCausalLM"}},
      {"model_type", "mamba2"},
      {"vocab_size", shape.vocab_size},
      {"hidden_size", shape.hidden_size},
      {"num_hidden_layers", shape.num_layers},
      {"num_heads", shape.nheads},
      {"head_dim", shape.headdim},
      {"n_groups", shape.ngroups},
      {"state_size", shape.dstate},
      {"conv_kernel", shape.conv_width},
      {"chunk_size", 256},
      {"hidden_act", "silu"},
      {"layer_norm_epsilon", 1e-5},
      {"residual_in_fp32", true},
      {"rms_norm", true},
      {"use_bias", false},
      {"use_conv_bias", true},
      {"tie_word_embeddings", shape.tied_head},
      {"torch_dtype", type == dtype::bf16  ? "bfloat16"
                      : type == dtype::f16 ? "float16"
                                           : "float32"},
  };
}

// All that could be wrong with the sizes: what the loader would refuse, what a writer cannot count.
void check_sizes(checkpoint_shape const& shape, checkpoint_storage const& storage,
                 std::string const& config) {
  // The tensors are listed in memory before the first is written.
  constexpr std::int64_t most_layers = 1 << 16;
  if (shape.num_layers < 0 || shape.num_layers > most_layers) {
    throw invalid_argument(
        fmt::format("{} layers; a checkpoint has 0 to {}", shape.num_layers, most_layers));
  }
  // Each factor below is less than 2^32 then.
  (void)parse_model_config(config, "config.json");
  auto one_layer = shape;
  one_layer.num_layers = 1;
  std::int64_t total = 0;
  for (auto const& recipe : recipes_of(one_layer)) {
    bool const in_each = recipe.name.starts_with("backbone.layers.");
    auto bytes =
        static_cast<std::int64_t>(size_of(storage.type)) * (in_each ? shape.num_layers : 1);
    bool beyond = false;
    for (auto const extent : recipe.shape) {
      beyond = beyond || __builtin_mul_overflow(bytes, extent, &bytes);
    }
    if (beyond || __builtin_add_overflow(total, bytes, &total)) {
      throw invalid_argument(
          fmt::format("{}, shape ({}), in {} layers: the weights are beyond 2^63 bytes",
                      recipe.name, fmt::join(recipe.shape, ", "), shape.num_layers));
    }
  }
}

// Runs of tensors that make a file each.
std::vector<std::span<tensor_recipe const>> shards_of(std::span<tensor_recipe const> recipes,
                                                      checkpoint_storage const& storage) {
  std::vector<std::span<tensor_recipe const>> shards;
  std::size_t first = 0;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    auto const own = recipes[i].size() * static_cast<std::int64_t>(size_of(storage.type));
    if (i != first && bytes + own > storage.shard_bytes) {
      shards.push_back(recipes.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += own;
  }
  shards.push_back(recipes.subspan(first));
  return shards;
}

}  // namespace

written_checkpoint write_random_checkpoint(std::filesystem::path const& folder,
                                           checkpoint_shape const& shape,
                                           checkpoint_storage const& storage,
                                           checkpoint_progress const& progress) {
  auto config = config_of(shape, storage.type);
  check_sizes(shape, storage, config.dump());
  config["expand"] = expansion_of(shape);
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) throw file_error(folder.string() + ": cannot be created: " + problem.message());
  // What was there before would be taken for part of this one.
  for (auto const& entry : std::filesystem::directory_iterator(folder)) {
    auto const name = entry.path().filename().string();
    bool const shard = name.starts_with("model-") && name.ends_with(".safetensors");
    if (shard || name == "config.json" || name == "model.safetensors" ||
        name == "model.safetensors.index.json") {
      std::filesystem::remove(entry.path(), problem);
    }
  }

  auto const recipes = recipes_of(shape);
  auto const shards = shards_of(recipes, storage);
  written_checkpoint result;
  for (auto const& recipe : recipes) result.parameters += recipe.size();
  result.bytes = result.parameters * static_cast<std::int64_t>(size_of(storage.type));
  result.files = static_cast<std::int64_t>(shards.size());

  std::int64_t done = 0;
  auto const advance = [&](std::size_t bytes) {
    done += static_cast<std::int64_t>(bytes);
    if (progress) progress(done, result.bytes);
  };
  nlohmann::ordered_json index = {{"metadata", {{"total_size", result.bytes}}},
                                  {"weight_map", nlohmann::ordered_json::object()}};
  for (std::size_t i = 0; i < shards.size(); ++i) {
    auto const name = shards.size() == 1
                          ? std::string("model.safetensors")
                          : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    safetensors_writer writer;
    writer.set_metadata("format", "pt");
    for (auto const& recipe : shards[i]) {
      writer.add(recipe.name, to_safetensors_type(storage.type), recipe.shape,
                 producer_of(recipe, storage, advance));
      index["weight_map"][recipe.name] = name;
    }
    writer.write(folder / name);
  }
  if (shards.size() > 1) write_text(folder / "model.safetensors.index.json", index.dump(2));
  write_text(folder / "config.json", config.dump(2));
  return result;
}

}  // namespace mambatile::evaluation
