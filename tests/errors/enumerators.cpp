#include <string>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/conv1d.hpp>
#include <mambatile/matmul.hpp>
#include <mambatile/norm.hpp>
#include <mambatile/scan.hpp>
#include <mambatile/state_update.hpp>
#include <mambatile/take_rows.hpp>

#include "support/refusals.hpp"
#include "support/scan_refusals.hpp"

// A number that is no enumerator, in any field of any problem, is refused and named.

namespace mambatile::testing {
namespace {

constexpr int stray = 77;

template <class Problem, class Enum>
void check_field(Problem problem, Enum Problem::*field, std::string const& name,
                 std::string const& rule) {
  INFO(Problem::operator_name << ", " << name);
  problem.*field = static_cast<Enum>(stray);
  check_refused(problem, {name + " = 77", rule});
  CHECK(to_string(problem).find(name + " = 77") != std::string::npos);
}

constexpr char const* any_real = "f32, bf16 or f16";
constexpr char const* parameter = "f32 or the io type";

template <class Problem>
void check_recurrence_fields(Problem const& good) {
  check_field(good, &Problem::io, "io", any_real);
  check_field(good, &Problem::dt, "dt", any_real);
  check_field(good, &Problem::state, "state", any_real);
  check_field(good, &Problem::D_type, "D_type", parameter);
  check_field(good, &Problem::dt_bias_type, "dt_bias_type", parameter);
  check_field(good, &Problem::D, "D", "one of none, per_head, per_channel");
}

TEST_CASE("enumerators: chunk_scan", "[errors]") {
  scan_problem const good{.max_batch = 1, .max_seqlen = 2, .nheads = 1, .headdim = 3, .dstate = 4};
  check_recurrence_fields(good);
  check_field(good, &scan_problem::pack, "pack", "one of dense, cu_seqlens, seq_idx");
  check_field(good, &scan_problem::math, "math", "one of accurate, tf32");
}

TEST_CASE("enumerators: state_update", "[errors]") {
  state_update_problem const good{.max_batch = 1, .nheads = 1, .headdim = 3, .dstate = 4};
  check_recurrence_fields(good);
  check_field(good, &state_update_problem::state_rounding, "state_rounding",
              "one of nearest, stochastic");
}

template <class Problem>
void check_convolution_fields() {
  Problem good;
  good.max_batch = 1;
  good.channels = 3;
  check_field(good, &Problem::io, "io", any_real);
  check_field(good, &Problem::weight, "weight", parameter);
  check_field(good, &Problem::bias, "bias", parameter);
  check_field(good, &Problem::state, "state", parameter);
  check_field(good, &Problem::act, "act", "one of none, silu");
  check_field(good, &Problem::pack, "pack", "one of dense, cu_seqlens, seq_idx");
}

TEST_CASE("enumerators: convolutions", "[errors]") {
  check_convolution_fields<conv1d_problem>();
  check_convolution_fields<conv1d_update_problem>();
}

TEST_CASE("enumerators: norm, matmul, take_rows", "[errors]") {
  using norm = gated_rms_norm_problem;
  norm const good_norm{.max_rows = 1, .channels = 3};
  check_field(good_norm, &norm::io, "io", any_real);
  check_field(good_norm, &norm::weight, "weight", parameter);
  check_field(good_norm, &norm::bias, "bias", parameter);
  matmul_problem const good_product{.max_rows = 1, .in_features = 2, .out_features = 3};
  check_field(good_product, &matmul_problem::x, "x", any_real);
  check_field(good_product, &matmul_problem::weight, "weight", any_real);
  check_field(good_product, &matmul_problem::bias, "bias", any_real);
  check_field(good_product, &matmul_problem::out, "out", any_real);
  take_rows_problem const good_rows{.max_rows = 1, .row_length = 2};
  check_field(good_rows, &take_rows_problem::source, "source", any_real);
  check_field(good_rows, &take_rows_problem::out, "out", any_real);
}

TEST_CASE("enumerators: where a problem is planned, and a tensor's type", "[errors]") {
  scan_problem const good{.max_batch = 1, .max_seqlen = 2, .nheads = 1, .headdim = 3, .dstate = 4};
  device const nowhere{static_cast<device_kind>(stray), 0};
  auto const message = message_of<unsupported>([&] { (void)tested_backend().plan(good, nowhere); });
  check_message(message, "chunk_scan", {"device kind 77"});

  scan_trial trial;
  trial.problem = good;
  auto const no_type = static_cast<dtype>(stray);
  check_refused_call(trial, [&](auto& call) { call.x.type = no_type; },
                     {"x has type 77", "expected f32"});
  check_refused_call(trial, [&](auto& call) { call.A.type = no_type; },
                     {"A has type 77", "expected f32"});
  check_refused_call(trial, [&](auto& call) { call.out.type = no_type; },
                     {"out has type 77", "expected f32"});
}

}  // namespace
}  // namespace mambatile::testing
