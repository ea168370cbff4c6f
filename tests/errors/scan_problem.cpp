#include <cstdint>
#include <limits>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/context.hpp>
#include <mambatile/scan.hpp>

#include "support/refusals.hpp"
#include "support/tested_backend.hpp"

// Rules that a scan_problem can break, and what plan and make_problem say then.

namespace mambatile::testing {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

scan_problem good_problem() {
  return {.max_batch = 2,
          .max_seqlen = 16,
          .nheads = 8,
          .headdim = 4,
          .ngroups = 2,
          .dstate = 4,
          .has_final_states = true};
}

TEST_CASE("scan_problem: a good one is planned", "[errors]") {
  CHECK(tested_backend().supports(good_problem()));
  auto const plan = tested_backend().plan(good_problem());
  CHECK(plan.problem() == good_problem());
  CHECK(&plan.served_by() == &tested_backend());
  CHECK(plan.where() == tested_device());
  CHECK_FALSE(plan.description().empty());
}

TEST_CASE("scan_problem: sizes are not negative", "[errors]") {
  struct field {
    char const* name;
    std::int64_t scan_problem::*size;
  };
  for (auto const& each :
       {field{"max_batch", &scan_problem::max_batch},
        field{"max_seqlen", &scan_problem::max_seqlen},
        field{"max_sequences", &scan_problem::max_sequences},
        field{"nheads", &scan_problem::nheads}, field{"headdim", &scan_problem::headdim},
        field{"dstate", &scan_problem::dstate},
        field{"intermediate_every", &scan_problem::intermediate_every}}) {
    auto problem = good_problem();
    problem.*each.size = -3;
    check_refused(problem, {std::string(each.name) + " = -3", "must not be negative"});
  }
  auto problem = good_problem();
  problem.chunk_size = -64;
  check_refused(problem, {"chunk_size = -64", "must not be negative"});
  problem = good_problem();
  problem.threads = -1;
  check_refused(problem, {"threads = -1", "must not be negative"});
}

TEST_CASE("scan_problem: ngroups divides nheads", "[errors]") {
  auto problem = good_problem();
  problem.ngroups = 3;
  check_refused(problem, {"nheads = 8", "not a multiple of ngroups = 3"});
  problem.ngroups = 16;
  check_refused(problem, {"nheads = 8", "not a multiple of ngroups = 16"});
  for (int const ngroups : {0, -2}) {
    problem.ngroups = ngroups;
    check_refused(problem, {"ngroups = " + std::to_string(ngroups), "at least 1"});
  }
}

TEST_CASE("scan_problem: a state has a size that offsets can hold", "[errors]") {
  auto problem = good_problem();
  problem.headdim = problem.dstate = std::int64_t{1} << 32;
  check_refused(problem, {"nheads * headdim * dstate = 8 * 4294967296 * 4294967296", "2^48"});
  problem.dstate = 0;
  problem.headdim = std::int64_t{1} << 48;
  check_refused(problem, {"nheads * headdim * dstate = 8 * 281474976710656 * 0", "2^48"});
  problem.headdim = std::int64_t{1} << 62;
  check_refused(problem, {"headdim = 4611686018427387904", "2^48"});
}

TEST_CASE("scan_problem: types hold real numbers, parameters f32 or the io type", "[errors]") {
  auto problem = good_problem();
  problem.io = dtype::i32;
  check_refused(problem, {"io = i32", "f32, bf16 or f16"});
  problem = good_problem();
  problem.dt = dtype::i32;
  check_refused(problem, {"dt = i32", "f32, bf16 or f16"});
  problem = good_problem();
  problem.state = dtype::i32;
  check_refused(problem, {"state = i32", "f32, bf16 or f16"});
  problem = good_problem();
  problem.io = dtype::bf16;
  problem.D_type = dtype::f16;
  check_refused(problem, {"D_type = f16", "f32 or the io type bf16"});
  problem.D_type = dtype::i32;
  check_refused(problem, {"D_type = i32", "f32 or the io type bf16"});
  problem = good_problem();
  problem.dt_bias_type = dtype::bf16;
  check_refused(problem, {"dt_bias_type = bf16", "f32 or the io type f32"});
}

TEST_CASE("scan_problem: dt_limit is 0 <= lo <= hi", "[errors]") {
  struct limits {
    std::array<float, 2> dt_limit;
    char const* shown;
  };
  for (auto const& each :
       {limits{{-0.5F, 1.0F}, "(-0.5, 1)"}, limits{{2.0F, 1.0F}, "(2, 1)"},
        limits{{nan, 1.0F}, "(nan, 1)"}, limits{{0.0F, nan}, "(0, nan)"},
        limits{{-infinity, infinity}, "(-inf, inf)"}, limits{{0.0F, -1.0F}, "(0, -1)"}}) {
    auto problem = good_problem();
    problem.dt_limit = each.dt_limit;
    check_refused(problem, {"dt_limit = ", each.shown, "0 <= lo <= hi"});
  }
}

TEST_CASE("scan_problem: pools need their states", "[errors]") {
  auto problem = good_problem();
  problem.has_state_source = true;
  check_refused(problem, {"has_state_source = true", "has_initial_states = true"});
  problem = good_problem();
  problem.has_state_target = true;
  problem.has_final_states = false;
  check_refused(problem, {"has_state_target = true", "has_final_states = true"});
}

TEST_CASE("scan_problem: packed sequences lie in one row", "[errors]") {
  auto problem = good_problem();
  problem.pack = packing::cu_seqlens;
  problem.max_sequences = 3;
  check_refused(problem, {"max_batch = 2", "cu_seqlens", "one row"});
  problem = good_problem();
  problem.max_sequences = 3;
  check_refused(problem, {"max_sequences = 3", "pack = dense"});
}

TEST_CASE("scan_problem: the device is one of the backend's", "[errors]") {
  auto const& tested = tested_backend();
  device const elsewhere{tested.kind() == device_kind::host ? device_kind::cuda : device_kind::host,
                         0};
  auto message = message_of<unsupported>([&] { (void)tested.plan(good_problem(), elsewhere); });
  check_message(message, "chunk_scan",
                {std::string(tested.name()), "does not serve device " + to_string(elsewhere)});
  CHECK(tested.supports(good_problem(), elsewhere).reason == message);
  for (int const index : {-1, tested.device_count()}) {
    message = message_of<unsupported>([&] {
      (void)tested.plan(good_problem(), {tested.kind(), index});
    });
    check_message(message, "chunk_scan",
                  {std::string(tested.name()), "device " + std::to_string(index)});
  }
}

TEST_CASE("scan_problem: make_problem names what it cannot read", "[errors]") {
  float number = 0;
  scan_arguments arguments;
  auto const message = [&] {
    return message_of<invalid_argument>([&] { (void)make_problem(arguments); });
  };
  check_message(message(), "chunk_scan", {"x is absent", "(batch, seqlen, nheads, headdim)"});
  arguments.x = make_view(&number, {1, 1, 1});
  check_message(message(), "chunk_scan", {"x has shape (1, 1, 1) of rank 3", "of rank 4"});
  arguments.x = make_view(&number, {1, 1, 1, 1});
  check_message(message(), "chunk_scan", {"dt is absent", "(batch, seqlen, nheads)"});
  arguments.dt = make_view(&number, {1, 1, 1});
  check_message(message(), "chunk_scan", {"B is absent", "(batch, seqlen, ngroups, dstate)"});
  arguments.B = make_view(&number, {1, 1, 1, 1});
  std::int32_t index = 0;
  arguments.cu_seqlens = make_view(&index, {1, 1});
  check_message(message(), "chunk_scan", {"cu_seqlens has shape (1, 1) of rank 2", "of rank 1"});
}

}  // namespace
}  // namespace mambatile::testing
