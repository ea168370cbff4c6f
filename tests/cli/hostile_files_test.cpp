#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <mambatile/mambatile.hpp>

#include "evaluation/random_checkpoint.hpp"
#include "program_run.hpp"
#include "small_scan.hpp"
#include "unit/safetensors_file.hpp"

// Files that are well-formed and still must not get what they ask for, or be shown as they are.

using namespace mambatile;
using namespace mambatile::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string const golden = MAMBATILE_TEST_DATA_DIR "/golden/ssd/";

bool holds_control_bytes(std::string const& text) {
  for (char const each : text) {
    auto const byte = static_cast<unsigned char>(each);
    if ((byte < 0x20 && each != '\n') || byte == 0x7f) return true;
  }
  return text.find("\xc2\x9b") != std::string::npos;
}

}  // namespace

TEST_CASE("cli: states out of proportion to their file are refused", "[cli]") {
  temporary_folder const folder;
  // No token: the file holds no element of x, B and C.
  struct sizes {
    std::int64_t batch, nheads, headdim, dstate;
  };
  for (auto const& [b, h, p, n] :
       {sizes{1, 1, 100000, 100000}, sizes{1, 1, std::int64_t{1} << 31, std::int64_t{1} << 31},
        sizes{std::int64_t{1} << 40, 1, 1, 0}, sizes{1000, 1, 1000, 1000}}) {
    INFO(b << " " << h << " " << p << " " << n);
    small_scan file;
    file.values = {{"x", {{b, 0, h, p}, {}}},
                   {"dt", {{b, 0, h}, {}}},
                   {"A", {{1}, {-1}}},
                   {"B", {{b, 0, 1, n}, {}}},
                   {"C", {{b, 0, 1, n}, {}}}};
    file.write(folder / "in");
    auto const run = run_program("scan " + shell_word(folder / "in"));
    CHECK(run.status == 3);
    CHECK_THAT(run.err, ContainsSubstring("final states of shape (") &&
                            ContainsSubstring("out of proportion"));
  }
}

TEST_CASE("cli: what memory cannot hold is refused", "[cli]") {
  auto run = run_program("bench scan --shape H1000000P1000G1N1000 --seqlen 1 --rounds 1");
  CHECK(run.status == 3);
  CHECK_THAT(run.err, ContainsSubstring("more memory than this machine has"));
  run = run_program("bench scan --shape H4000000000P4000000000G1N4000000000 --seqlen 1");
  CHECK(run.status == 3);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A sanitizer itself needs terabytes of addresses.
  run = run_program("bench scan --shape H64P1000G1N1000 --seqlen 1 --threads 1 --rounds 1",
                    "ulimit -v 300000;");
  CHECK(run.status == 3);
  CHECK_THAT(run.err, ContainsSubstring("not enough memory") || ContainsSubstring("could not"));
#endif
}

TEST_CASE("cli: of a pool, scan compares the slots that the call writes", "[cli]") {
  temporary_folder const folder;
  small_scan file;
  file.values["initial_states"] = {{4, 1, 1, 1}, {7, 8, 0, 9}};
  file.indices["state_source"] = {{1}, {2}};
  file.indices["state_target"] = {{1}, {1}};
  file.values["final_states"] = {{4, 1, 1, 1}, {-1, 4.25F, -2, -3}};
  file.write(folder / "in");
  auto const in = shell_word(folder / "in");
  auto run = run_program("scan " + in + " -o " + shell_word(folder / "out"));
  INFO(run.out << run.err);
  CHECK(run.status == 0);
  std::array<float, 4> states = {};
  safetensors_file(folder / "out").copy_to("final_states", make_view(states.data(), {4, 1, 1, 1}));
  CHECK(states[0] == 7);
  CHECK(states[2] == 0);
  CHECK(states[3] == 9);
  CHECK(run_program("demo --repeat 1 " + in).status == 0);

  file.values["final_states"].second[1] *= 1.001F;
  file.write(folder / "in");
  CHECK(run_program("scan " + in).status == 1);

  // A pool of another size than the one that was read.
  file.values["final_states"] = {{2, 1, 1, 1}, {5, 4.25F}};
  file.write(folder / "in");
  run = run_program("scan " + in + " -o " + shell_word(folder / "out"));
  CHECK(run.status == 0);
  safetensors_file(folder / "out").copy_to("final_states", make_view(states.data(), {2, 1, 1, 1}));
  CHECK(states[0] == 0);
}

TEST_CASE("cli: demo goes on after a file that is refused", "[cli]") {
  temporary_folder const folder;
  auto bytes = read_bytes(golden + "T1.safetensors");
  bytes.resize(bytes.size() - 1);
  write_bytes(folder / "a_short.safetensors", bytes);
  small_scan good;
  good.write(folder / "b_good.safetensors");
  small_scan wrong_rank;
  wrong_rank.values["x"].first = {3, 1, 1};
  wrong_rank.write(folder / "c_rank.safetensors");
  auto const run = run_program("demo --repeat 1 " + shell_word(folder.path()));
  CHECK(run.status == 3);
  CHECK_THAT(run.out, ContainsSubstring("a_short") && ContainsSubstring("end beyond the file's") &&
                          ContainsSubstring("b_good") && ContainsSubstring("yes") &&
                          ContainsSubstring("c_rank") && ContainsSubstring("NO") &&
                          !ContainsSubstring(" 0 passed") && !ContainsSubstring(" 0 failed"));
  // A wrong result weighs more.
  good.values["y"].second[0] = 3;
  good.write(folder / "b_good.safetensors");
  CHECK(run_program("demo --repeat 1 " + shell_word(folder.path())).status == 1);
}

TEST_CASE("cli: control characters of files are shown, not sent", "[cli]") {
  temporary_folder const folder;
  small_scan file;
  file.values["\x1b[31mred\x7f\xc2\x9bnext"] = {{1}, {0}};
  file.write(folder / "esc\x1b[31m.safetensors");
  auto const in = shell_word(folder / "esc\x1b[31m.safetensors");
  for (std::string const command : {"scan ", "scan --json ", "demo --repeat 1 "}) {
    auto const run = run_program(command + in);
    INFO(run.out << run.err);
    CHECK(run.status == 0);
    CHECK_FALSE(holds_control_bytes(run.out));
  }
  CHECK_THAT(run_program("scan " + in).out,
             ContainsSubstring(R"(tensor '\x1b[31mred\x7f\x9bnext' has no part)"));

  file.metadata["dt_softplus"] = "\x1b[2J";
  file.write(folder / "in");
  auto run = run_program("scan " + shell_word(folder / "in"));
  CHECK(run.status == 3);
  CHECK_FALSE(holds_control_bytes(run.err));
  CHECK_THAT(run.err, ContainsSubstring(R"(dt_softplus is "\x1b[2J")"));
  run = run_program("demo " + shell_word(folder / "in"));
  CHECK_FALSE(holds_control_bytes(run.out));
}

TEST_CASE("cli: control characters of checkpoints are shown, not sent", "[cli]") {
  // A folder's name, and that of a tensor which nobody uses, so that it is remarked upon.
  temporary_folder const folder;
  auto const made = folder / "esc\x1b[31m";
  evaluation::write_random_checkpoint(made, {"small", 12, 1, 6, 5, 2, 7, 3, 17});
  safetensors_writer writer;
  std::array<float, 1> const value = {0};
  {
    safetensors_file const file(made / "model.safetensors");
    for (auto const& each : file.tensors()) {
      writer.add(each.name, each.type, each.shape, each.bytes);
    }
    writer.add("\x1b[2Jextra\x7f\xc2\x9b", make_view(value.data(), {1}));
    writer.write(folder / "weights");
  }
  std::filesystem::rename(folder / "weights", made / "model.safetensors");

  auto const in = shell_word(made);
  auto run = run_program("info " + in);
  INFO(run.out << run.err);
  CHECK(run.status == 0);
  CHECK_FALSE(holds_control_bytes(run.out));
  CHECK_THAT(run.out, ContainsSubstring(R"(esc\x1b[31m)") && ContainsSubstring("2Jextra"));
  run = run_program("info --json " + in);
  CHECK(run.status == 0);
  CHECK_FALSE(holds_control_bytes(run.out));
  CHECK(nlohmann::json::parse(run.out)["checkpoint"] == made.string());
  run = run_program("generate --ids 3 -n 2 " + in);
  CHECK(run.status == 0);
  CHECK_FALSE(holds_control_bytes(run.out));
  CHECK_FALSE(holds_control_bytes(run.err));
  CHECK_THAT(run.err, ContainsSubstring(R"(esc\x1b[31m on )") && ContainsSubstring("2Jextra"));

  // A name that is no UTF-8 has no place in JSON as it is.
  std::filesystem::rename(made, folder / "latin\xe9");
  run = run_program("info --json " + shell_word(folder / "latin\xe9"));
  CHECK(run.status == 0);
  CHECK_THAT(run.out, ContainsSubstring(R"(latin\ufffd)"));
}
