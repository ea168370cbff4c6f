#include <array>
#include <sstream>
#include <string>
#include <vector>

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
  CHECK(lines[1]["batch"] == 5);
  CHECK(lines[1]["fraction_of_peak"].get<double>() > 0);
  CHECK(run_program("bench update --shape nonsense").status == 2);
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
