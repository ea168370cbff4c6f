#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <mambatile/mambatile.hpp>

#include "program_run.hpp"

using namespace mambatile;
using namespace mambatile::testing;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("cli: info says what is compiled in", "[cli]") {
  auto const run = run_program("info");
  CHECK(run.status == 0);
  CHECK(run.err.empty());
  CHECK_THAT(run.out, ContainsSubstring("mambatile " + std::string(version())));
  for (auto const* on : compiled_backends()) {
    CHECK_THAT(run.out, ContainsSubstring(std::string(on->name()) + ": "));
  }
}

TEST_CASE("cli: info --json agrees with the library", "[cli]") {
  auto const run = run_program("info --json");
  REQUIRE(run.status == 0);
  auto const info = nlohmann::json::parse(run.out);
  CHECK(info["version"] == version());
  CHECK(info["cpu"]["processors"] >= 1);
  CHECK(info["backends"].size() == 3);
  int compiled = 0;
  for (auto const& entry : info["backends"]) {
    compiled += entry["compiled"].get<bool>() ? 1 : 0;
    if (entry["name"] != "reference") continue;
    auto const& scan = entry["operators"]["chunk_scan"];
    CHECK(scan["io"] == nlohmann::json{"f32", "bf16", "f16"});
    CHECK(scan["packing"] == nlohmann::json{"dense", "cu_seqlens", "seq_idx"});
    CHECK(scan["intermediate_every_multiple_of"] == 1);
  }
  CHECK(compiled == static_cast<int>(compiled_backends().size()));
}

TEST_CASE("cli: the environment chooses the default backend", "[cli]") {
  auto const run = run_program("info --json", "MAMBATILE_BACKEND=reference");
  REQUIRE(run.status == 0);
  CHECK(nlohmann::json::parse(run.out)["default_backend"] == "reference");
  auto const wrong = run_program("info", "MAMBATILE_BACKEND=nonsense");
  CHECK(wrong.status == 0);
  CHECK_THAT(wrong.out, ContainsSubstring("nonsense"));
}

TEST_CASE("cli: wrong usage is told apart", "[cli]") {
  CHECK(run_program("").status == 2);
  CHECK(run_program("nonsense").status == 2);
  CHECK(run_program("info --nonsense").status == 2);
  CHECK(run_program("--help").status == 0);
  auto const version_run = run_program("--version");
  CHECK(version_run.status == 0);
  CHECK(version_run.out == std::string(version()) + "\n");
}
