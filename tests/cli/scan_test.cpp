#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <mambatile/mambatile.hpp>

#include "program_run.hpp"
#include "small_scan.hpp"
#include "unit/safetensors_file.hpp"

using namespace mambatile;
using namespace mambatile::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string const golden = MAMBATILE_TEST_DATA_DIR "/golden/ssd/";

struct refusal {
  char const* what;
  std::function<void(small_scan&)> change;
  char const* message;
};

}  // namespace

TEST_CASE("cli: scan compares with what the file expects", "[cli]") {
  for (auto const* on : compiled_backends()) {
    if (!on->is_available() || on->kind() != device_kind::host) continue;
    std::string const name(on->name());
    for (std::string const io : {"", "f32", "bf16", "f16"}) {
      INFO(name << " " << io);
      auto const run =
          run_program("scan " + shell_word(golden + "initial_states_all_options.safetensors") +
                      " --backend " + name + (io.empty() ? "" : " --io " + io));
      CHECK(run.status == 0);
      CHECK(run.err.empty());
      CHECK_THAT(run.out, ContainsSubstring("y             pass") &&
                              ContainsSubstring("final_states  pass") && ContainsSubstring(name) &&
                              ContainsSubstring(" tokens/s"));
    }
  }
}

TEST_CASE("cli: scan --json prints one object", "[cli]") {
  auto const run = run_program("scan " + shell_word(golden + "varlen_initial_states.safetensors") +
                               " --backend reference --io f32 --repeat 3 --json");
  REQUIRE(run.status == 0);
  auto const line = nlohmann::json::parse(run.out);
  CHECK(line["backend"] == "reference");
  CHECK_THAT(line["plan"].get<std::string>(), ContainsSubstring("reference"));
  CHECK(line["io"] == "f32");
  CHECK(line["tokens"] == 180);
  CHECK(line["repeat"] == 3);
  CHECK(line["ms"].get<double>() >= line["ms_min"].get<double>());
  CHECK(line["tokens_per_s"].get<double>() > 0);
  CHECK(line["y"]["pass"] == true);
  CHECK(line["y"]["slice"].get<double>() <= line["y"]["slice_limit"].get<double>());
  CHECK(line["final_states"]["pass"] == true);
  CHECK(line["pass"] == true);
}

TEST_CASE("cli: scan writes a file that scan reads again", "[cli]") {
  temporary_folder const folder;
  small_scan file;
  file.metadata["dt_limit"] = "[0.0, \"inf\"]";
  file.write(folder / "in");
  auto const run =
      run_program("scan " + shell_word(folder / "in") + " -o " + shell_word(folder / "out"));
  INFO(run.out << run.err);
  REQUIRE(run.status == 0);
  safetensors_file const out(folder / "out");
  std::array<float, 3> y = {};
  out.copy_to("y", make_view(y.data(), {1, 3, 1, 1}));
  CHECK(std::abs(y[1] - 2.5F) < 1e-5F);
  CHECK(std::abs(y[2] - 4.25F) < 1e-5F);
  CHECK(out.at("final_states").shape == std::vector<std::int64_t>{1, 1, 1, 1});
  CHECK(!out.metadata().at("plan").empty());
}

TEST_CASE("cli: a result beyond tolerance is a failure of its own", "[cli]") {
  temporary_folder const folder;
  for (auto const* tensor : {"y", "final_states"}) {
    INFO(tensor);
    small_scan file;
    file.values[tensor].second.back() *= 1.0001F;
    file.write(folder / "in");
    auto const run = run_program("scan " + shell_word(folder / "in"));
    CHECK(run.status == 1);
    CHECK_THAT(run.out, ContainsSubstring("FAIL: relative error"));
    auto const json = run_program("scan --json " + shell_word(folder / "in"));
    CHECK(json.status == 1);
    CHECK(nlohmann::json::parse(json.out)[tensor]["pass"] == false);
    CHECK(nlohmann::json::parse(json.out)["pass"] == false);
    auto const demo = run_program("demo " + shell_word(folder / "in"));
    CHECK(demo.status == 1);
    CHECK_THAT(demo.out, ContainsSubstring("NO"));
  }
}

TEST_CASE("cli: scan says when there is nothing to compare", "[cli]") {
  temporary_folder const folder;
  small_scan file;
  file.values.erase("y");
  file.values.erase("final_states");
  file.values["extra"] = {{1}, {0}};
  file.write(folder / "in");
  auto const run = run_program("scan " + shell_word(folder / "in"));
  CHECK(run.status == 0);
  CHECK_THAT(run.out, ContainsSubstring("nothing compared") &&
                          ContainsSubstring("tensor 'extra' has no part in a scan"));
  auto const json = run_program("scan --json " + shell_word(folder / "in"));
  CHECK(nlohmann::json::parse(json.out)["pass"].is_null());
  CHECK(nlohmann::json::parse(json.out)["unused_tensors"] == nlohmann::json{"extra"});
}

TEST_CASE("cli: scan obeys the options of the file", "[cli]") {
  temporary_folder const folder;
  small_scan file;
  file.values["dt"].second = {1, 5, 1};  // the limit brings the second step back to 1
  file.metadata["dt_limit"] = "[0, 1]";
  file.write(folder / "in");
  CHECK(run_program("scan " + shell_word(folder / "in")).status == 0);
  file.metadata["dt_limit"] = "[0, \"inf\"]";
  file.write(folder / "in");
  CHECK(run_program("scan " + shell_word(folder / "in")).status == 1);

  small_scan soft;
  soft.values["dt"].second.assign(3, std::log(std::expm1(1.0F)));
  soft.metadata["dt_softplus"] = "true";
  soft.write(folder / "in");
  CHECK(run_program("scan " + shell_word(folder / "in")).status == 0);
  soft.metadata["dt_softplus"] = "false";
  soft.write(folder / "in");
  CHECK(run_program("scan " + shell_word(folder / "in")).status == 1);
}

TEST_CASE("cli: what scan refuses, it names", "[cli]") {
  std::array<refusal, 12> const refusals = {{
      {"no x", [](auto& file) { file.values.erase("x"); }, "has no tensor 'x'"},
      {"rank",
       [](auto& file) {
         file.values["x"].first = {3, 1, 1};
       },
       "chunk_scan: x has"},
      {"C shorter",
       [](auto& file) {
         file.values["C"] = {{1, 2, 1, 1}, {1, 1}};
       },
       "chunk_scan: C has shape (1, 2, 1, 1)"},
      {"A longer",
       [](auto& file) {
         file.values["A"] = {{2}, {-1, -1}};
       },
       "chunk_scan: A has"},
      {"groups",
       [](auto& file) {
         file.values["B"] = {{1, 3, 2, 1}, {1, 1, 1, 1, 1, 1}};
       },
       "ngroups"},
      {"y of another shape",
       [](auto& file) {
         file.values["y"] = {{1, 2, 1, 1}, {1, 1}};
       },
       "expected y has shape (1, 2, 1, 1)"},
      {"limits backwards", [](auto& file) { file.metadata["dt_limit"] = "[1, 0]"; }, "dt_limit"},
      {"limits are text", [](auto& file) { file.metadata["dt_limit"] = "none"; },
       "__metadata__: dt_limit is \"none\", not a list of two numbers"},
      {"one limit", [](auto& file) { file.metadata["dt_limit"] = "[0]"; }, "not a list of two"},
      {"softplus", [](auto& file) { file.metadata["dt_softplus"] = "yes"; },
       "__metadata__: dt_softplus is \"yes\", not \"true\" or \"false\""},
      {"chunk", [](auto& file) { file.metadata["chunk_size"] = "-4"; },
       "__metadata__: chunk_size is \"-4\", not a whole number"},
      {"indices are no integers",
       [](auto& file) {
         file.values["seq_idx"] = {{1, 3}, {0, 0, 0}};
       },
       "tensor 'seq_idx' has type F32, which is not read as i32"},
  }};
  temporary_folder const folder;
  for (auto const& [what, change, message] : refusals) {
    INFO(what);
    small_scan file;
    change(file);
    file.write(folder / "in");
    auto const run = run_program("scan " + shell_word(folder / "in"));
    CHECK(run.status == 3);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, ContainsSubstring("mambatile: ") && ContainsSubstring(message));
  }
}

TEST_CASE("cli: damaged files and unknown backends are refused", "[cli]") {
  temporary_folder const folder;
  auto bytes = read_bytes(golden + "T1.safetensors");
  REQUIRE(bytes.size() > 100);
  bytes.resize(bytes.size() - 1);
  write_bytes(folder / "short", bytes);
  auto const truncated = run_program("scan " + shell_word(folder / "short"));
  CHECK(truncated.status == 3);
  CHECK_THAT(truncated.err, ContainsSubstring("end beyond the file's"));

  auto const absent = run_program("scan " + shell_word(folder / "absent"));
  CHECK(absent.status == 3);
  CHECK_THAT(absent.err, ContainsSubstring("cannot be opened"));

  auto const unknown =
      run_program("scan --backend nonsense " + shell_word(golden + "T1.safetensors"));
  CHECK(unknown.status == 3);
  CHECK_THAT(unknown.err,
             ContainsSubstring("no backend \"nonsense\"") && ContainsSubstring("reference"));

  CHECK(run_program("scan").status == 2);
  CHECK(run_program("scan --io i32 " + shell_word(golden + "T1.safetensors")).status == 2);
  CHECK(run_program("scan --repeat 0 " + shell_word(golden + "T1.safetensors")).status == 2);
  auto const unwritable = run_program("scan " + shell_word(golden + "T1.safetensors") + " -o " +
                                      shell_word(folder / "absent/out"));
  CHECK(unwritable.status == 3);
  CHECK_THAT(unwritable.err, ContainsSubstring("cannot be created"));
}

TEST_CASE("cli: a named chunk is the plan's chunk", "[cli]") {
  for (auto const* on : compiled_backends()) {
    if (on->name() != "kokkos" || !on->is_available()) continue;
    auto const run = run_program("scan --json --backend kokkos --chunk-size 48 " +
                                 shell_word(golden + "T127_c32.safetensors"));
    CHECK(run.status == 0);
    CHECK_THAT(nlohmann::json::parse(run.out)["plan"].get<std::string>(), ContainsSubstring("48"));
  }
}

TEST_CASE("cli: demo prints one row a case and backend", "[cli]") {
  auto const run = run_program("demo --repeat 1 " + shell_word(golden + "T1.safetensors") + " " +
                               shell_word(golden + "varlen.safetensors"));
  CHECK(run.status == 0);
  CHECK_THAT(run.out, ContainsSubstring("case") && ContainsSubstring("varlen  ") &&
                          ContainsSubstring(" 0 failed"));
  auto const empty = run_program("demo '" MAMBATILE_TEST_DATA_DIR "/cli'");
  CHECK(empty.status == 3);
  CHECK_THAT(empty.err, ContainsSubstring("holds no .safetensors file"));
}
