#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <mambatile/checkpoint.hpp>
#include <mambatile/model.hpp>

#include "models/small_checkpoint.hpp"
#include "unit/safetensors_file.hpp"

using namespace mambatile;
using namespace mambatile::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string const in_proj = "backbone.layers.1.mixer.in_proj.weight";

std::vector<float> logits_of_a_prompt(std::filesystem::path const& folder) {
  model of(checkpoint::open(folder), find_backend("reference"));
  model_cache cache(of, 1);
  std::vector<std::int32_t> const ids = {3, 1, 4, 1, 5};
  std::vector<float> logits(static_cast<std::size_t>(of.config().vocab_size));
  sequence_tokens const sequence{0, ids};
  of.forward(cache, {&sequence, 1}, logits_of::last_tokens, logits);
  return logits;
}

std::string refusal_of(small_checkpoint const& changed) {
  temporary_folder const folder;
  changed.write(folder.path());
  return file_error_of([&] { (void)checkpoint::open(folder.path()); });
}

}  // namespace

TEST_CASE("checkpoint: each weight shows in the logits", "[models]") {
  temporary_folder const folder;
  auto const original = small_checkpoint::make();
  original.write(folder.path());
  auto const logits = logits_of_a_prompt(folder.path());
  for (auto const& [name, stored] : original.tensors) {
    INFO(name);
    auto changed = original;
    auto& bytes = changed.tensors[name].bytes;
    // The rows of the embedding that are read, or anything.
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    for (auto& value : values) value = 0.9F * value + 0.01F;
    std::memcpy(bytes.data(), values.data(), bytes.size());
    changed.write(folder.path());
    CHECK(logits_of_a_prompt(folder.path()) != logits);
  }
}

TEST_CASE("checkpoint: a missing, misshaped or mistyped tensor is named", "[models]") {
  auto const original = small_checkpoint::make();
  for (auto const& [name, stored] : original.tensors) {
    INFO(name);
    auto changed = original;
    changed.tensors.erase(name);
    auto const missing = refusal_of(changed);
    // Without either name of the embedding, the message has the other one.
    CHECK_THAT(missing, ContainsSubstring(name == "backbone.embeddings.weight"
                                              ? "backbone.embedding.weight is missing"
                                              : name + " is missing"));
    changed = original;
    auto& tensor = changed.tensors[name];
    tensor.shape.front() -= 1;
    tensor.bytes.resize(tensor.bytes.size() / static_cast<std::size_t>(tensor.shape.front() + 1) *
                        static_cast<std::size_t>(tensor.shape.front()));
    CHECK_THAT(refusal_of(changed), ContainsSubstring(name + " has shape") &&
                                        ContainsSubstring("the configuration asks for"));
    changed = original;
    changed.tensors[name].type = safetensors_type::i32;
    CHECK_THAT(refusal_of(changed), ContainsSubstring(name + " has type I32"));
  }
  auto transposed = original;
  std::swap(transposed.tensors[in_proj].shape[0], transposed.tensors[in_proj].shape[1]);
  CHECK_THAT(refusal_of(transposed), ContainsSubstring(in_proj + " has shape (12, "));
}

TEST_CASE("checkpoint: tied and untied heads, tensors nobody uses", "[models]") {
  temporary_folder const folder;
  auto changed = small_checkpoint::make();
  std::vector<std::string> remarks;
  auto const open = [&] {
    remarks.clear();
    changed.write(folder.path());
    return checkpoint::open(folder.path(),
                            [&](std::string_view remark) { remarks.emplace_back(remark); });
  };
  auto const tied = open();
  CHECK(remarks.empty());
  CHECK(tied.weights().head.data == tied.weights().embedding.data);

  auto const embedding = changed.tensors.at("backbone.embeddings.weight");
  changed.tensors["lm_head.weight"] = embedding;
  changed.tensors["extra"] = embedding;
  (void)open();
  REQUIRE(remarks.size() == 2);
  CHECK(remarks[0] == "extra is not used");
  CHECK_THAT(remarks[1],
             ContainsSubstring("lm_head.weight is not used") && ContainsSubstring("ties the head"));
  CHECK_NOTHROW(checkpoint::open(folder.path()));

  changed.config["tie_word_embeddings"] = false;
  auto const untied = open();
  CHECK(remarks.size() == 1);
  CHECK(untied.weights().head.data != untied.weights().embedding.data);
  changed.tensors.erase("lm_head.weight");
  CHECK_THAT(file_error_of([&] { (void)open(); }), ContainsSubstring("lm_head.weight is missing"));
}

TEST_CASE("checkpoint: weights stay as stored, where they lie", "[models]") {
  temporary_folder const folder;
  for (auto const type : {dtype::f32, dtype::bf16, dtype::f16}) {
    INFO(to_string(type));
    evaluation::write_random_checkpoint(folder.path(), small_shape, {.type = type});
    auto const stored = checkpoint::open(folder.path());
    CHECK(stored.weight_type() == type);
    CHECK(stored.file_bytes() ==
          static_cast<std::int64_t>(std::filesystem::file_size(folder / "model.safetensors")));
    auto const& layer = stored.weights().layers.at(1);
    CHECK(layer.input_projection.type == type);
    CHECK(layer.conv_weight.rank == 2);
    // Parameters of the recurrence are f32 whatever the file holds, A formed from its logarithm.
    CHECK(layer.A.type == dtype::f32);
    for (std::int64_t i = 0; i < layer.A.size(); ++i) {
      auto const A = static_cast<float const*>(layer.A.data)[i];
      CHECK((A <= -1.0F && A >= -16.2F));
    }
    // The views outlive every copy but the last.
    auto const copy = stored;
    CHECK(copy.weights().layers.at(1).input_projection.data == layer.input_projection.data);
  }
}

TEST_CASE("checkpoint: shards", "[models]") {
  temporary_folder const folder;
  evaluation::write_random_checkpoint(folder.path(), small_shape);
  auto const whole = logits_of_a_prompt(folder.path());
  auto const written =
      evaluation::write_random_checkpoint(folder.path(), small_shape, {.shard_bytes = 3000});
  REQUIRE(written.files > 2);
  CHECK(logits_of_a_prompt(folder.path()) == whole);

  auto const path = folder / "model.safetensors.index.json";
  auto const index = nlohmann::ordered_json::parse(text_of(path));
  auto const refused = [&](std::function<void(nlohmann::ordered_json&)> const& change,
                           std::string const& message) {
    auto changed = index;
    change(changed);
    write_text(path, changed.dump());
    CHECK_THAT(file_error_of([&] { (void)checkpoint::open(folder.path()); }),
               ContainsSubstring(message));
  };
  for (auto const* name : {"../model.safetensors", "/etc/passwd", "..", ".", "", "a/b"}) {
    refused([&](auto& changed) { changed["weight_map"][in_proj] = name; }, "is not the name of a");
  }
  refused([](auto& changed) { changed["weight_map"][in_proj] = 1; }, "is not a file name");
  refused([](auto& changed) { changed["weight_map"][in_proj] = "absent"; }, "absent");
  refused([](auto& changed) { changed["weight_map"]["more"] = changed["weight_map"][in_proj]; },
          "has no tensor more");
  refused([](auto& changed) { changed["weight_map"].erase(in_proj); }, in_proj + " is missing");
  refused([](auto& changed) { changed.erase("weight_map"); }, "weight_map is absent");
  refused([](auto& changed) { changed["weight_map"] = 3; }, "not an object");
  std::filesystem::remove(path);
  CHECK_THAT(file_error_of([&] { (void)checkpoint::open(folder.path()); }),
             ContainsSubstring("has neither"));
}

TEST_CASE("checkpoint: a NaN in one weight is no reason to refuse", "[models]") {
  temporary_folder const folder;
  auto changed = small_checkpoint::make();
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(changed.tensors[in_proj].bytes.data(), &nan, sizeof nan);
  changed.write(folder.path());
  CHECK_NOTHROW(checkpoint::open(folder.path()));
}
