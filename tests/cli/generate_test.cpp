#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <mambatile/mambatile.hpp>

#include "program_run.hpp"
#include "unit/safetensors_file.hpp"

using namespace mambatile;
using namespace mambatile::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string const models = MAMBATILE_TEST_DATA_DIR "/golden/models/";
std::string const model_folder = "'" + models + "hf_tied_g1' ";

// The published implementation's greedy continuations of two of the file's prompts.
std::string const seven = "--ids 32,27,31,11,25,21,92 ";
std::string const after_seven = "78 78 1 23 70 6 7 66 35 68 28 76 76 76 76 2\n";
std::string const after_one = "70 70 70 35 5 19 78 1 9 50 69 28 43 43 43 43\n";

program_run generate(std::string const& arguments) {
  auto run = run_program("generate " + model_folder + arguments);
  UNSCOPED_INFO(run.err);  // shown by the assertion that follows
  return run;
}

void write_text(std::filesystem::path const& path, std::string const& text) {
  std::ofstream(path) << text;
}

std::string word(std::filesystem::path const& path) { return "'" + path.string() + "' "; }

}  // namespace

TEST_CASE("cli: generate prints a golden continuation on every backend", "[cli]") {
  for (auto const* on : compiled_backends()) {
    if (!on->is_available() || on->kind() != device_kind::host) continue;
    auto const run = generate(seven + "--backend " + std::string(on->name()));
    CHECK(run.status == 0);
    CHECK(run.out == after_seven);
    CHECK_THAT(run.err, ContainsSubstring("prompt: 7 tokens") &&
                            ContainsSubstring("generated: 16 tokens") &&
                            ContainsSubstring("tokens/s") && ContainsSubstring("workspace"));
  }
  CHECK(generate(seven + "--io bf16 -n 3").out == "78 78 1\n");
  CHECK(generate(seven + "-n 0").out == "\n");
  CHECK(generate(seven + "--threads 1 --state f16 -n 3").out == "78 78 1\n");
}

TEST_CASE("cli: generate takes several sequences, from the line and from a file", "[cli]") {
  CHECK(generate(seven + "--ids 76").out == after_seven + after_one);
  temporary_folder const folder;
  write_text(folder / "ids", "32 27 31 11 25 21 92\n\n76\n");
  CHECK(generate("--ids-file " + word(folder / "ids")).out == after_seven + after_one);
  write_text(folder / "ids", "32, 27,31,11 25 21\t92");
  CHECK(generate("--ids 76 --ids-file " + word(folder / "ids")).out == after_one + after_seven);
}

TEST_CASE("cli: generate goes on from a saved state", "[cli]") {
  temporary_folder const folder;
  auto const state = word(folder / "state");
  auto const first = generate(seven + "-n 5 --state-out " + state);
  CHECK(first.out == "78 78 1 23 70\n");
  // The saved state has seen all that was printed, so the next prompt is what comes after it.
  auto const next = generate("--ids 6 -n 10 --state-in " + state);
  CHECK(next.out == "7 66 35 68 28 76 76 76 76 2\n");
  // Another model's state is refused, and so is a damaged one.
  auto const other =
      run_program("generate '" + models + "hf_untied_g2_bigdt' --ids 1 --state-in " + state);
  CHECK(other.status == 3);
  CHECK(other.out.empty());
  auto bytes = read_bytes(folder / "state");
  bytes.resize(bytes.size() - 1);
  write_bytes(folder / "state", bytes);
  CHECK(generate("--ids 6 --state-in " + state).status == 3);
  CHECK(generate("--ids 6 --state-in " + word(folder / "absent")).status == 3);
  auto const two = generate("--ids 6 --ids 7 --state-out " + state);
  CHECK(two.status == 3);
  CHECK_THAT(two.err, ContainsSubstring("hold one sequence, but 2 were given"));
}

TEST_CASE("cli: a saved state has seen the id that ends the sequence", "[cli]") {
  temporary_folder const folder;
  auto const whole = generate(seven + "--state-out " + word(folder / "whole"));
  CHECK(whole.out == after_seven);
  // The same up to the end's id, which is then a prompt: one token a call in both.
  CHECK(generate(seven + "-n 15 --state-out " + word(folder / "before")).status == 0);
  auto const end = generate("--ids 2 -n 0 --state-in " + word(folder / "before") + "--state-out " +
                            word(folder / "after"));
  CHECK(end.status == 0);
  CHECK(read_bytes(folder / "whole") == read_bytes(folder / "after"));
  CHECK(read_bytes(folder / "whole") != read_bytes(folder / "before"));
}

TEST_CASE("cli: generate refuses ids that are none", "[cli]") {
  for (auto const* ids :
       {"1,x", "1,,x", "-1", "1.5", "99999999999999999999", "2147483648", "0x1"}) {
    INFO(ids);
    auto const run = generate("--ids=" + std::string(ids));
    CHECK(run.status == 3);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, ContainsSubstring("is not a token id"));
  }
  // A token of another vocabulary.
  auto const beyond = generate("--ids 3,97");
  CHECK(beyond.status == 3);
  CHECK_THAT(beyond.err, ContainsSubstring("ids[1] = 97 is outside the vocabulary of 97"));
  CHECK_THAT(generate("").err, ContainsSubstring("no token ids were given"));
  CHECK(generate("--ids ''").status == 3);
  temporary_folder const folder;
  write_text(folder / "ids", "1 2\n3 q\n");
  auto const file = generate("--ids-file " + word(folder / "ids"));
  CHECK(file.status == 3);
  CHECK_THAT(file.err, ContainsSubstring("ids: \"q\" is not a token id"));
  CHECK(generate("--ids-file " + word(folder / "absent")).status == 3);
  write_text(folder / "ids", "\n\n");
  CHECK(generate("--ids-file " + word(folder / "ids")).status == 3);
}

TEST_CASE("cli: generate samples by its flags", "[cli]") {
  auto const hot = seven + "--temperature 30 ";
  auto const drawn = generate(hot + "--seed 1");
  CHECK(drawn.status == 0);
  CHECK(generate(hot + "--seed 1").out == drawn.out);
  CHECK(generate(hot + "--seed 2").out != drawn.out);
  CHECK(drawn.out != after_seven);
  // Whatever leaves one token to choose from is greedy.
  CHECK(generate(hot + "--seed 1 --top-k 1").out == after_seven);
  CHECK(generate(hot + "--seed 1 --top-p 0.0001").out == after_seven);
  CHECK(generate(seven + "--temperature 0.01 --seed 3").out == after_seven);
  CHECK(generate(seven + "--temperature 0 --top-k 5 --top-p 0.5 --seed 9").out == after_seven);
  // A sequence draws the same whatever stands beside it.
  auto const pair = generate(hot + "--seed 1 --ids 76");
  CHECK(pair.out.substr(0, drawn.out.size()) == drawn.out);
}

TEST_CASE("cli: generate refuses what it cannot honour", "[cli]") {
  CHECK(generate(seven + "--temperature -1").status == 3);
  CHECK(generate(seven + "--temperature nan").status == 3);
  CHECK(generate(seven + "--top-k -1").status == 3);
  CHECK(generate(seven + "--top-p 0").status == 3);
  CHECK(generate(seven + "--top-p 1.5").status == 3);
  CHECK(generate(seven + "--seed -1").status == 2);
  CHECK(generate(seven + "-n -1").status == 2);
  CHECK(generate(seven + "--io f64").status == 2);
  CHECK(generate(seven + "--backend nonsense").status == 3);
  auto const absent = run_program("generate /nonexistent --ids 1");
  CHECK(absent.status == 3);
  CHECK_THAT(absent.err, ContainsSubstring("/nonexistent/config.json"));
  CHECK_THAT(run_program("generate --help").out, ContainsSubstring("no tokenizer is built in"));
}

TEST_CASE("cli: make-checkpoint writes what info and generate read", "[cli]") {
  temporary_folder const folder;
  auto const make = [&](std::string const& arguments) {
    auto run = run_program("make-checkpoint -o " + word(folder / "made") + arguments);
    UNSCOPED_INFO(run.err);
    return run;
  };
  std::string const small =
      "--hidden-size 48 --layers 3 --heads 6 --headdim 16 --groups 2 --dstate 24 --vocab 131 ";
  CHECK(make(small).status == 0);
  auto const greedy = "generate " + word(folder / "made") + "--ids 5,7 -n 6 ";
  auto const ids = run_program(greedy).out;
  CHECK(!ids.empty());
  CHECK(run_program(greedy + "--backend reference").out == ids);

  // Not replaced unasked; the same seed gives the same bytes, shards cut the same numbers.
  CHECK(make(small).status == 3);
  auto const whole = read_bytes(folder / "made/model.safetensors");
  CHECK(make(small + "--overwrite").status == 0);
  CHECK(read_bytes(folder / "made/model.safetensors") == whole);
  CHECK(make(small + "--overwrite --seed 1").status == 0);
  CHECK(read_bytes(folder / "made/model.safetensors") != whole);
  CHECK(make(small + "--overwrite --shard-bytes 40000").status == 0);
  CHECK(!std::filesystem::exists(folder / "made/model.safetensors"));
  CHECK(std::filesystem::exists(folder / "made/model.safetensors.index.json"));
  CHECK(run_program(greedy).out == ids);

  auto const info = run_program("info --json --state bf16 " + word(folder / "made"));
  REQUIRE(info.status == 0);
  auto const told = nlohmann::json::parse(info.out);
  // embedding, then per layer: norm, in_proj, conv and bias, dt_bias, A, D, norm, out_proj; norm_f.
  std::int64_t const channels = 96 + 2 * 2 * 24;
  std::int64_t const layer = 48 + (96 + channels + 6) * 48 + channels * 5 + 3 * 6 + 96 + 48 * 96;
  CHECK(told["parameters"] == 131 * 48 + 3 * layer + 48);
  CHECK(told["architecture"]["ngroups"] == 2);
  CHECK(told["architecture"]["tied_head"] == true);
  CHECK(told["weight_type"] == "f32");
  CHECK(told["runs"]["bytes_per_sequence"] == 3 * (channels * 3 * 4 + 96 * 24 * 2));
  CHECK(told["file_bytes"].get<std::int64_t>() > 4 * told["parameters"].get<std::int64_t>());
  CHECK(!told["runs"]["plans"].empty());
  auto const text = run_program("info " + word(folder / "made"));
  CHECK_THAT(text.out, ContainsSubstring("3 layers, hidden size 48, vocabulary 131") &&
                           ContainsSubstring("a sequence") && ContainsSubstring("chunk_scan: "));
  // The checkpoint's options mean nothing without one.
  CHECK(run_program("info --threads 1").status == 2);
  CHECK(run_program("info /nonexistent").status == 3);
}

TEST_CASE("cli: make-checkpoint takes a model's sizes and replaces some", "[cli]") {
  temporary_folder const folder;
  auto const out = "make-checkpoint -o " + word(folder / "made");
  REQUIRE(
      run_program(out + "--like mamba2-130m --layers 1 --vocab 64 --untied --dtype bf16").status ==
      0);
  auto const told = nlohmann::json::parse(run_program("info --json " + word(folder / "made")).out);
  CHECK(told["architecture"]["hidden_size"] == 768);
  CHECK(told["architecture"]["num_layers"] == 1);
  CHECK(told["architecture"]["tied_head"] == false);
  CHECK(told["weight_type"] == "bf16");
  auto const unknown = run_program(out + "--like nonsense");
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("mamba2-2.7b"));
  auto const sizeless = run_program("make-checkpoint -o " + word(folder / "none"));
  CHECK(sizeless.status == 3);
  CHECK_THAT(sizeless.err, ContainsSubstring("--hidden-size"));
  auto const groups =
      run_program("make-checkpoint -o " + word(folder / "none") + "--like mamba2-130m --groups 5");
  CHECK(groups.status == 3);
  CHECK(!std::filesystem::exists(folder / "none"));
  CHECK_THAT(groups.err, ContainsSubstring("24 heads are not a multiple of 5 groups"));
  CHECK(run_program(out + "--like mamba2-130m --layers 0").status == 2);
}

TEST_CASE("cli: make-checkpoint refuses sizes before it touches a file", "[cli]") {
  temporary_folder const folder;
  auto const make = "make-checkpoint --overwrite -o " + word(folder / "made") +
                    "--headdim 16 --groups 2 --vocab 31 ";
  REQUIRE(run_program(make + "--hidden-size 48 --layers 2 --heads 6 --dstate 24").status == 0);
  auto const before = read_bytes(folder / "made/model.safetensors");
  struct row {
    char const* sizes;
    char const* message;
  };
  for (auto const& [sizes, message] :
       {row{"--hidden-size 48 --layers 2 --heads 2147483646 --dstate 24",
            "heads * channels of a head"},
        row{"--hidden-size 48 --layers 2 --heads 6 --dstate 2147483647", "groups * states"},
        row{"--hidden-size 48 --layers 2147483647 --heads 6 --dstate 24", "2147483647 layers"},
        row{"--hidden-size 2147483647 --layers 60000 --heads 16777214 --dstate 24",
            "beyond 2^63 bytes"},
        // In double precision, 32 / 98 * 98 is not 32.
        row{"--hidden-size 98 --layers 2 --heads 2 --dstate 24", "no exact \"expand\""}}) {
    INFO(sizes);
    auto const run = run_program(make + sizes);
    CHECK(run.status == 3);
    CHECK_THAT(run.err, ContainsSubstring(message));
    CHECK(read_bytes(folder / "made/model.safetensors") == before);
  }
  // What transformers reads: strict JSON, and an "expand" that gives the heads' channels back.
  auto const config = [&] {
    auto const bytes = read_bytes(folder / "made/config.json");
    return nlohmann::json::parse(
        std::string(reinterpret_cast<char const*>(bytes.data()), bytes.size()));
  };
  CHECK(config()["expand"] == 2);
  CHECK(config()["expand"].is_number_integer());
  CHECK_FALSE(config().contains("time_step_limit"));
  CHECK(run_program(make + "--hidden-size 64 --layers 1 --heads 6 --dstate 24").status == 0);
  CHECK(config()["expand"] == 1.5);
}
