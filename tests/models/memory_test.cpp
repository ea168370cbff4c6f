#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/matmul.hpp>
#include <mambatile/model.hpp>

#include "models/small_checkpoint.hpp"
#include "unit/safetensors_file.hpp"

// What loading and running a checkpoint takes, as the system counts it. Linux alone lets a process
// start its own high-water mark afresh.

using namespace mambatile;
using namespace mambatile::testing;

namespace {

constexpr std::int64_t mebibyte = 1 << 20;

std::int64_t status_bytes(std::string const& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::int64_t kibibytes = 0;
    if (word == key && file >> kibibytes) return kibibytes * 1024;
  }
  return -1;
}

// The high-water mark becomes what is resident now.
bool start_high_water_mark() {
  std::ofstream file("/proc/self/clear_refs");
  file << '5';
  return static_cast<bool>(file.flush()) && status_bytes("VmHWM:") > 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool memory_is_counted = false;
#else
constexpr bool memory_is_counted = true;
#endif

}  // namespace

TEST_CASE("model: memory at its peak is the file, the states and the workspace", "[models]") {
  if (!memory_is_counted) SKIP("a sanitizer's own memory would be counted");
  if (!start_high_water_mark()) SKIP("/proc/self/clear_refs cannot be written here");
  temporary_folder const folder;
  evaluation::checkpoint_shape const shape = {"memory", 512, 4, 16, 64, 1, 64, 4, 16384};
  evaluation::write_random_checkpoint(folder.path(), shape, {.type = dtype::bf16});
  auto const& on = default_backend();
  // Threads and their stacks are there before counting starts.
  (void)on.plan(matmul_problem{.max_rows = 1, .in_features = 1, .out_features = 1});
  REQUIRE(start_high_water_mark());
  auto const before = status_bytes("VmRSS:");

  auto const stored = checkpoint::open(folder.path());
  model of(stored, on);
  model_cache cache(of, 2);
  std::vector<std::int32_t> ids(700);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 23 % 16384);
  std::vector<float> logits(static_cast<std::size_t>(shape.vocab_size));
  sequence_tokens const prompt{1, ids};
  of.forward(cache, {&prompt, 1}, logits_of::last_tokens, logits);
  ids = {5};
  sequence_tokens const next{1, ids};
  of.forward(cache, {&next, 1}, logits_of::last_tokens, logits);

  auto const grown = status_bytes("VmHWM:") - before;
  auto const counted = stored.file_bytes() + static_cast<std::int64_t>(cache.bytes()) +
                       static_cast<std::int64_t>(of.workspace_bytes());
  INFO("file " << stored.file_bytes() << ", states " << cache.bytes() << ", workspace "
               << of.workspace_bytes() << ", grown by " << grown);
  REQUIRE(stored.file_bytes() > 20 * mebibyte);
  // Small parameters as f32, the plans, the heap's own slack; a second copy of the weights would be
  // five times as much.
  CHECK(grown <= counted + 4 * mebibyte);
  // And most of it is the file, really read.
  CHECK(grown >= stored.file_bytes() / 2);
}

namespace {

struct named_shape {
  std::string name;
  std::vector<std::int64_t> shape;
};

std::vector<named_shape> tensors_of(evaluation::checkpoint_shape const& shape) {
  auto const hidden = shape.hidden_size;
  auto const inner = shape.nheads * shape.headdim;
  auto const channels = inner + 2 * shape.ngroups * shape.dstate;
  std::vector<named_shape> tensors = {{"backbone.embeddings.weight", {shape.vocab_size, hidden}},
                                      {"backbone.norm_f.weight", {hidden}},
                                      {"never_used", {1 << 20, 256}}};
  for (std::int64_t i = 0; i < shape.num_layers; ++i) {
    auto const block = "backbone.layers." + std::to_string(i) + ".";
    auto const mixer = block + "mixer.";
    for (auto&& each : std::vector<named_shape>{
             {block + "norm.weight", {hidden}},
             {mixer + "in_proj.weight", {inner + channels + shape.nheads, hidden}},
             {mixer + "conv1d.weight", {channels, 1, shape.conv_width}},
             {mixer + "conv1d.bias", {channels}},
             {mixer + "dt_bias", {shape.nheads}},
             {mixer + "A_log", {shape.nheads}},
             {mixer + "D", {shape.nheads}},
             {mixer + "norm.weight", {inner}},
             {mixer + "out_proj.weight", {hidden, inner}}}) {
      tensors.push_back(std::move(each));
    }
  }
  return tensors;
}

// The header alone is written; the rest of the file is a hole, which reads as zeros.
void write_sparse(std::filesystem::path const& path, std::vector<named_shape> const& tensors) {
  nlohmann::ordered_json header;
  std::uint64_t offset = 0;
  for (auto const& [name, shape] : tensors) {
    std::uint64_t bytes = sizeof(float);
    for (auto const extent : shape) bytes *= static_cast<std::uint64_t>(extent);
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  auto text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  write_bytes(path, safetensors_bytes(text, 0));
  std::filesystem::resize_file(path, 8 + text.size() + offset);
}

}  // namespace

TEST_CASE("checkpoint: 5 GiB load without reading what is not used", "[models]") {
  if (!memory_is_counted) SKIP("a sanitizer's own memory would be counted");
  temporary_folder const folder;
  evaluation::checkpoint_shape shape = {"sparse", 4096, 11, 128, 64, 1, 128, 4, 32};
  // The configuration, from a model of the same kind with one layer's worth of small tensors.
  evaluation::write_random_checkpoint(folder.path(), small_shape);
  auto config = nlohmann::ordered_json::parse(text_of(folder / "config.json"));
  config["hidden_size"] = shape.hidden_size;
  config["num_hidden_layers"] = shape.num_layers;
  config["num_heads"] = shape.nheads;
  config["head_dim"] = shape.headdim;
  config["n_groups"] = shape.ngroups;
  config["state_size"] = shape.dstate;
  config["conv_kernel"] = shape.conv_width;
  config["vocab_size"] = shape.vocab_size;
  write_text(folder / "config.json", config.dump());
  auto const path = folder / "model.safetensors";
  try {
    write_sparse(path, tensors_of(shape));
  } catch (std::filesystem::filesystem_error const& problem) {
    SKIP("a file of 5 GiB cannot be made in " << folder.path() << ": " << problem.what());
  }
  REQUIRE(std::filesystem::file_size(path) > std::uintmax_t{5} << 30U);
  struct ::stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  if (status.st_blocks * 512 > mebibyte) SKIP("this filesystem has no sparse files");
  if (!start_high_water_mark()) SKIP("/proc/self/clear_refs cannot be written here");

  auto const before = status_bytes("VmRSS:");
  auto const stored = checkpoint::open(folder.path());
  CHECK(stored.file_bytes() == static_cast<std::int64_t>(std::filesystem::file_size(path)));
  model const of(stored, default_backend(), {.max_tokens = 8, .max_sequences = 1});
  auto const grown = status_bytes("VmHWM:") - before;
  INFO("grown by " << grown);
  // Norms and convolutions of eleven layers, and the pages around them that the system reads ahead.
  CHECK(grown < 64 * mebibyte);
}
