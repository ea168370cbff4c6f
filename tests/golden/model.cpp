#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <span>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <mambatile/checkpoint.hpp>
#include <mambatile/model.hpp>
#include <mambatile/safetensors.hpp>
#include <mambatile/sampler.hpp>

#include "golden/golden_file.hpp"
#include "support/tested_backend.hpp"

// Tiny checkpoints with the logits and greedy tokens of the published implementations, in f32.

namespace mambatile::testing {
namespace {

namespace fs = std::filesystem;

fs::path models_folder() { return fs::path(MAMBATILE_TEST_DATA_DIR) / "golden" / "models"; }

struct prompt {
  std::string name;
  std::int64_t batch;
  std::int64_t tokens;
};
std::vector<prompt> const prompts = {{"b1_T1", 1, 1},   {"b1_T7", 1, 7}, {"b1_T33", 1, 33},
                                     {"b1_T70", 1, 70}, {"b2_T7", 2, 7}, {"b2_T33", 2, 33}};

std::vector<std::int32_t> ids_of(golden_file const& golden, std::string const& name) {
  auto const tensor = golden.tensor(name, dtype::i32);
  auto const* const data = static_cast<std::int32_t const*>(tensor.view().data);
  return {data, data + tensor.view().size()};
}

// max |got - want| / max |want| over the vocabulary's columns of `want`'s rows.
double relative_error(std::span<float const> got, std::int64_t vocab,
                      const_tensor_view const& want) {
  auto const columns = want.extent(want.rank - 1);
  auto const rows = want.size() / columns;
  REQUIRE(static_cast<std::int64_t>(got.size()) == rows * vocab);
  auto const* const expected = static_cast<float const*>(want.data);
  double worst = 0;
  double largest = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t v = 0; v < vocab; ++v) {
      double const wanted = static_cast<double>(expected[r * columns + v]);
      double const difference =
          std::fabs(static_cast<double>(got[static_cast<std::size_t>(r * vocab + v)]) - wanted);
      // Written so that a NaN counts.
      worst = difference <= worst ? worst : difference;
      largest = std::max(largest, std::fabs(wanted));
    }
  }
  return worst / largest;
}

std::vector<sequence_tokens> batch_of(std::vector<std::int32_t> const& ids, std::int64_t batch) {
  std::vector<sequence_tokens> sequences;
  auto const tokens = ids.size() / static_cast<std::size_t>(batch);
  for (std::int64_t b = 0; b < batch; ++b) {
    sequences.push_back({b, std::span(ids).subspan(static_cast<std::size_t>(b) * tokens, tokens)});
  }
  return sequences;
}

std::vector<float> run(model& of, model_cache& cache, std::vector<sequence_tokens> const& batch,
                       logits_of wanted) {
  auto const rows = model::logits_rows(batch, wanted);
  std::vector<float> logits(static_cast<std::size_t>(rows * of.config().vocab_size),
                            std::numeric_limits<float>::quiet_NaN());
  of.forward(cache, batch, wanted, logits);
  return logits;
}

model make_model(fs::path const& folder, model_options const& options = {}) {
  return model(checkpoint::open(folder), tested_backend(), options);
}

// Logits of all tokens of every prompt.
void check_prompts(model& of, golden_file const& golden, double limit) {
  for (auto const& each : prompts) {
    INFO(each.name);
    auto const ids = ids_of(golden, "input_ids_" + each.name);
    model_cache cache(of, each.batch);
    auto const logits = run(of, cache, batch_of(ids, each.batch), logits_of::all_tokens);
    auto const want = golden.tensor("logits_" + each.name, dtype::f32);
    auto const error = relative_error(logits, of.config().vocab_size, want.view());
    INFO("error " << error << " (limit " << limit << ")");
    CHECK(error <= limit);
  }
}

// The greedy continuation, fed to itself or, where `feeds_golden`, from the file.
void check_greedy(model& of, golden_file const& golden, bool feeds_golden, double limit) {
  auto const vocab = static_cast<std::size_t>(of.config().vocab_size);
  for (auto const& each : prompts) {
    INFO(each.name);
    auto const ids = ids_of(golden, "input_ids_" + each.name);
    auto const greedy = ids_of(golden, "greedy_ids_" + each.name);
    auto const steps = greedy.size() / static_cast<std::size_t>(each.batch);
    auto const want = golden.tensor("greedy_logits_" + each.name, dtype::f32);
    model_cache cache(of, each.batch);
    auto logits = run(of, cache, batch_of(ids, each.batch), logits_of::last_tokens);
    std::vector<float> all(static_cast<std::size_t>(each.batch) * steps * vocab);
    sampler choose{sampling_options{}};
    std::size_t differing = 0;
    for (std::size_t step = 0; step < steps; ++step) {
      std::vector<std::int32_t> next;
      for (std::size_t b = 0; b < static_cast<std::size_t>(each.batch); ++b) {
        auto const row = std::span(logits).subspan(b * vocab, vocab);
        std::copy(row.begin(), row.end(),
                  all.begin() + static_cast<std::ptrdiff_t>((b * steps + step) * vocab));
        auto const chosen = choose(row);
        auto const expected = greedy[b * steps + step];
        if (chosen != expected) ++differing;
        next.push_back(feeds_golden ? expected : chosen);
      }
      logits = run(of, cache, batch_of(next, each.batch), logits_of::last_tokens);
    }
    if (!feeds_golden) CHECK(differing == 0);
    auto const error = relative_error(all, of.config().vocab_size, want.view());
    INFO("error " << error << " (limit " << limit << ")");
    CHECK(error <= limit);
  }
}

std::vector<std::string> const model_names = {"hf_tied_g1", "hf_untied_g2_bigdt", "ss_tied_g1",
                                              "ss_untied_g2"};

// The same weights stored in a type that holds them exactly. The references choose from the padded
// vocabulary too, so its rows count as tokens here.
fs::path copy_in_type(std::string const& name, dtype type) {
  auto const folder = fs::temp_directory_path() /
                      ("mambatile_" + name + "_" + std::string(tested_backend().name()));
  fs::create_directories(folder);
  auto const padded = checkpoint::open(models_folder() / name).config().padded_vocab;
  std::ifstream source_config(models_folder() / name / "config.json");
  auto config = nlohmann::json::parse(
      std::regex_replace(std::string(std::istreambuf_iterator<char>(source_config), {}),
                         std::regex(R"(\bInfinity,?\n)"), "\"Infinity\"\n"));
  config["vocab_size"] = padded;
  std::ofstream(folder / "config.json") << config;
  safetensors_file const source(models_folder() / name / "model.safetensors");
  golden_file const reader(models_folder() / name / "model.safetensors");
  std::vector<evaluation::host_tensor> converted;
  converted.reserve(source.tensors().size());
  safetensors_writer writer;
  for (auto const& tensor : source.tensors()) {
    converted.push_back(reader.tensor(tensor.name, type));
    writer.add(tensor.name, converted.back().view());
  }
  writer.write(folder / "model.safetensors");
  return folder;
}

TEST_CASE("model: golden checkpoints", "[golden]") {
  if (!is_host_backend()) SKIP("this backend does not have every operator of a model");
  for (auto const& name : model_names) {
    INFO(name);
    golden_file const golden(models_folder() / name / "golden.safetensors");
    auto whole = make_model(models_folder() / name);
    check_prompts(whole, golden, 1e-5);
    auto const padded = copy_in_type(name, dtype::f32);
    auto greedy = make_model(padded);
    check_greedy(greedy, golden, false, 1e-5);
    fs::remove_all(padded);
    // Passes that cut every longer prompt, and take fewer sequences than there are.
    auto cut = make_model(models_folder() / name, {.max_tokens = 13, .max_sequences = 1});
    check_prompts(cut, golden, 1e-5);
  }
}

// What a slot holds after the prompt, as the file says it.
void check_states(std::string const& name, fs::path const& saved) {
  golden_file const golden(models_folder() / name / "golden.safetensors");
  auto of = make_model(models_folder() / name);
  model_cache cache(of, 2);
  auto const ids = ids_of(golden, "input_ids_b2_T33");
  (void)run(of, cache, batch_of(ids, 2), logits_of::last_tokens);
  auto const compare = [&](char const* ours, char const* theirs, std::int64_t slot,
                           std::int64_t columns, double limit) {
    auto const file = golden_file(saved);
    auto const got = file.tensor(ours, dtype::f32);
    auto const want = golden.tensor(theirs, dtype::f32);
    auto const layers = want.view().extent(0);
    auto const last = want.view().extent(want.view().rank - 1);
    auto const rows = want.view().size() / (layers * 2 * last);
    auto const* const a = static_cast<float const*>(got.view().data);
    auto const* const b = static_cast<float const*>(want.view().data);
    double worst = 0;
    double largest = 0;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          double const x = static_cast<double>(a[(layer * rows + row) * columns + column]);
          double const y = static_cast<double>(
              b[((layer * 2 + slot) * rows + row) * last + last - columns + column]);
          worst = std::fabs(x - y) <= worst ? worst : std::fabs(x - y);
          largest = std::max(largest, std::fabs(y));
        }
      }
    }
    INFO(name << " " << ours << " slot " << slot << ": error " << worst / largest);
    CHECK(worst / largest <= limit);
  };
  for (std::int64_t slot = 0; slot < 2; ++slot) {
    cache.save(slot, saved);
    compare("conv_states", "conv_state", slot, of.config().conv_width - 1, 1e-5);
    compare("ssm_states", "ssm_state", slot, of.config().dstate, 1e-5);
    // What was saved goes on as if it had never stopped.
    model_cache other(of, 3);
    other.load(2, saved);
    CHECK(other.tokens_seen(2) == 33);
    std::vector<std::int32_t> const next = {5};
    auto const here = run(of, cache, {{slot, next}}, logits_of::last_tokens);
    auto const there = run(of, other, {{2, next}}, logits_of::last_tokens);
    CHECK(here == there);
  }
}

TEST_CASE("model: states after a prompt, saved and loaded", "[golden]") {
  if (!is_host_backend()) SKIP("this backend does not have every operator of a model");
  auto const saved = fs::temp_directory_path() /
                     ("mambatile_state_" + std::string(tested_backend().name()) + ".safetensors");
  for (auto const& name : {"hf_tied_g1", "hf_untied_g2_bigdt"}) check_states(name, saved);
  fs::remove(saved);
}

TEST_CASE("model: golden checkpoints with 16-bit weights", "[golden]") {
  if (!is_host_backend()) SKIP("this backend does not have every operator of a model");
  for (auto const& name : model_names) {
    for (auto const type : {dtype::bf16, dtype::f16}) {
      INFO(name << " " << to_string(type));
      golden_file const golden(models_folder() / name / "golden.safetensors");
      auto const folder = copy_in_type(name, type);
      auto exact = make_model(folder);
      check_prompts(exact, golden, 1e-5);
      auto rounded = make_model(folder, {.io = type});
      check_greedy(rounded, golden, true, 3e-2);
      fs::remove_all(folder);
    }
  }
}

}  // namespace
}  // namespace mambatile::testing
