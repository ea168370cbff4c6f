#include <array>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "program_run.hpp"

using namespace mambatile::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

using json = nlohmann::ordered_json;

std::vector<json> lines_of(std::string const& text) {
  std::vector<json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
  return lines;
}

std::string const small = "bench scan --shape H3P16G1N24 --threads 1 --rounds 2 ";

}  // namespace

TEST_CASE("cli: bench scan --json prints the agreed fields", "[cli]") {
  auto const run = run_program(small + "--seqlen 65 --json --backend reference");
  INFO(run.err);
  REQUIRE(run.status == 0);
  auto const lines = lines_of(run.out);
  REQUIRE(lines.size() == 1);
  std::vector<std::string> names;
  for (auto const& [name, value] : lines[0].items()) {
    if (!name.ends_with("_ratio") && (!name.ends_with("_ms"))) names.push_back(name);
  }
  CHECK(names == std::vector<std::string>{"operator", "backend", "plan", "shape", "batch", "seqlen",
                                          "threads", "io", "ms", "ms_min", "tokens_per_s",
                                          "fraction_of_peak", "workspace_bytes"});
  CHECK(lines[0]["operator"] == "chunk_scan");
  CHECK(lines[0]["shape"] == "H3P16G1N24");
  CHECK(lines[0]["seqlen"] == 65);
  CHECK(lines[0]["ms"].get<double>() >= lines[0]["ms_min"].get<double>());
  double const fraction = lines[0]["fraction_of_peak"];
  CHECK((fraction > 0 && fraction < 1));
}

TEST_CASE("cli: bench scan takes every combination and every variant", "[cli]") {
  auto const run = run_program(small +
                               "--json --seqlen 3,64 --io bf16 --variant "
                               "plain,zero-state,z,seq_idx,cu_seqlens,slots,snapshots,unaligned");
  INFO(run.err);
  REQUIRE(run.status == 0);
  auto const lines = lines_of(run.out);
  CHECK(lines.size() == 16);
  CHECK(lines[0]["io"] == "bf16");
  CHECK(lines[8]["seqlen"] == 64);
  CHECK(lines[15]["variant"] == "unaligned");
  auto const text = run_program(small + "--seqlen 65");
  CHECK(text.status == 0);
  CHECK_THAT(text.out, ContainsSubstring("tokens/s") && ContainsSubstring("% peak"));
}

TEST_CASE("cli: bench update measures against the plain loop of its run", "[cli]") {
  auto const run = run_program(
      "bench update --shape H3P16G1N24 --threads 1 --rounds 2 --hot --batch 1,5 --state bf16 "
      "--json");
  INFO(run.err);
  REQUIRE(run.status == 0);
  auto const lines = lines_of(run.out);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["operator"] == "state_update");
  CHECK(lines[0]["variant"] == "hot");
  CHECK(lines[0]["seqlen"] == 1);
  CHECK(lines[0]["state"] == "bf16");
  CHECK(lines[1]["batch"] == 5);
  CHECK(lines[1]["fraction_of_peak"].get<double>() > 0);
  // 2 bytes an element, read and written.
  double const bytes = 2.0 * 2 * 5 * 3 * 16 * 24;
  CHECK(lines[1]["gbytes_per_s"].get<double>() ==
        Catch::Approx(bytes / lines[1]["ms"].get<double>() * 1e-6));
  CHECK(lines[1]["tokens_per_s"].get<double>() ==
        Catch::Approx(5 / lines[1]["ms"].get<double>() * 1e3));
  CHECK(run_program("bench update --shape nonsense").status == 2);
}

TEST_CASE("cli: bench conv counts every tensor once", "[cli]") {
  auto const run = run_program(
      "bench conv --shape H3P16G1N24 --threads 1 --rounds 2 --seqlen 1,7 --batch 2,3 --io f16 "
      "--width 5 --json");
  INFO(run.err);
  REQUIRE(run.status == 0);
  auto const lines = lines_of(run.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0]["operator"] == "causal_conv1d_update");
  CHECK(lines[1]["operator"] == "causal_conv1d");
  CHECK(lines[3]["batch"] == 3);
  CHECK(lines[3]["seqlen"] == 7);
  // x and out, states in and out in f16; weight and bias in f32.
  constexpr double channels = 3 * 16 + 2 * 24;
  double const bytes = channels * (2 * 3 * 7 * 2 + 2 * 3 * 4 * 2 + 5 * 4 + 4);
  CHECK(lines[3]["gbytes_per_s"].get<double>() ==
        Catch::Approx(bytes / lines[3]["ms"].get<double>() * 1e-6));
  CHECK(lines[3]["fraction_of_peak"].get<double>() > 0);
  CHECK(!lines[3].contains("ggml_ms"));  // ggml has no such type here
}

TEST_CASE("cli: bench norm in both orders and without a gate", "[cli]") {
  std::string const each = "bench norm --shape H4P16G2N24 --threads 1 --rounds 2 --seqlen 9 --json";
  auto const gated = run_program(each + " --norm-before-gate");
  auto const alone = run_program(each + " --no-gate");
  REQUIRE(gated.status == 0);
  REQUIRE(alone.status == 0);
  auto const check = [](std::string const& out, double rows) {
    auto const line = lines_of(out).at(0);
    CHECK(line["operator"] == "gated_rms_norm");
    CHECK(line["gbytes_per_s"].get<double>() ==
          Catch::Approx((rows * 9 + 1) * 64 * 4 / line["ms"].get<double>() * 1e-6));
  };
  check(gated.out, 3);
  check(alone.out, 2);
}

TEST_CASE("cli: bench refuses sizes that are no shape", "[cli]") {
  for (auto const* of : {"scan", "conv", "norm", "update"}) {
    for (auto const* sizes : {"H0P64G1N128", "H4P0G1N8", "H4P16G0N8", "H4P16G3N8", "H-4P16G1N8"}) {
      auto const run = run_program("bench " + std::string(of) + " --shape " + sizes);
      INFO(of << ' ' << run.err);
      CHECK(run.status == 2);
      CHECK_THAT(run.err, ContainsSubstring(sizes));
    }
  }
}

TEST_CASE("cli: bench refuses more than can be addressed", "[cli]") {
  for (auto const* of : {"norm --seqlen 4611686018427387904 --shape H2P16G1N16",
                         "norm --seqlen 2 --shape H4611686018427387904P4G1N1",
                         "conv --seqlen 2 --shape H4611686018427387904P4G1N1",
                         "update --tokens 4611686018427387904 --shape H2P16G1N16"}) {
    auto const run = run_program("bench " + std::string(of) + " --batch 4 --rounds 1");
    INFO(of << ' ' << run.err);
    CHECK(run.status == 3);
    CHECK_THAT(run.err, ContainsSubstring("memory"));
  }
}

TEST_CASE("cli: bench scan refuses shapes it does not know", "[cli]") {
  auto const run = run_program("bench scan --shape nonsense");
  CHECK(run.status == 2);
  CHECK_THAT(run.err, ContainsSubstring("nonsense") && ContainsSubstring("mamba2-2.7b"));
  CHECK(run_program("bench scan --shape H0P16G1N24").status == 2);
  CHECK(run_program("bench update --shape H1P16G1N0").status == 2);
  CHECK(run_program("bench").status == 2);
  CHECK(run_program("bench scan --variant nonsense").status == 2);
  CHECK(run_program(small + "--backend nonsense").status == 3);
}

TEST_CASE("cli: a number out of bounds is named in a line", "[cli]") {
  for (auto const& [option, value, least] : {std::array{"--threads", "0", "1"},
                                             {"--seqlen", "-4", "1"},
                                             {"--chunk-size", "-1", "0"},
                                             {"--rounds", "2x", "1"},
                                             {"--batch", "99999999999999999999", "1"}}) {
    auto const run = run_program(std::string("bench scan ") + option + "=" + value);
    CHECK(run.status == 2);
    CHECK_THAT(run.err, ContainsSubstring(std::string(value) +
                                          " is not a whole number of at least " + least));
    CHECK(run.err.size() < 200);
  }
}

TEST_CASE("cli: benchmarks report the threads that ran", "[cli]") {
  for (std::string const command :
       {"bench scan --shape H3P16G1N24 --seqlen 64", "bench update --shape H3P16G1N24 --hot",
        "bench conv --shape mamba2-130m --seqlen 4", "bench norm --shape mamba2-130m --seqlen 4"}) {
    auto const run = run_program(command + " --threads 1000 --rounds 1 --json --backend reference");
    INFO(command << ": " << run.err);
    REQUIRE(run.status == 0);
    CHECK(lines_of(run.out).at(0)["threads"] == 1);
  }
}
