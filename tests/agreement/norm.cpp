#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/norm_trial.hpp"
#include "support/pairwise.hpp"

// Every option of gated_rms_norm against f64.

namespace mambatile::testing {
namespace {

norm_trial plain_trial(std::vector<std::int64_t> outer, std::int64_t channels) {
  norm_trial trial;
  trial.outer = std::move(outer);
  trial.problem.max_rows = 1;
  for (auto const extent : trial.outer) trial.problem.max_rows *= extent;
  trial.problem.channels = channels;
  return trial;
}

TEST_CASE("norm: any channel count agrees", "[agreement]") {
  for (std::int64_t channels = 1; channels <= 150; ++channels) {
    for (int const gate : {0, 1, 2}) {
      auto trial = plain_trial({5}, channels);
      trial.seed = static_cast<std::uint64_t>(channels);
      trial.problem.has_z = gate != 0;
      trial.problem.norm_before_gate = gate == 2;
      check_norm_trial(trial);
    }
  }
  for (std::int64_t const channels : {1536, 5120, 8193}) {
    auto trial = plain_trial({3}, channels);
    trial.problem.has_z = true;
    check_norm_trial(trial);
  }
}

TEST_CASE("norm: any group size agrees", "[agreement]") {
  for (std::int64_t const group_size : {1, 2, 3, 5, 15, 16, 30, 48, 80, 120, 240}) {
    for (bool const norm_before_gate : {false, true}) {
      auto trial = plain_trial({7}, 240);
      trial.problem.group_size = group_size;
      trial.problem.has_z = trial.problem.has_bias = true;
      trial.problem.norm_before_gate = norm_before_gate;
      check_norm_trial(trial);
    }
  }
}

TEST_CASE("norm: zeros give zeros, or the bias", "[agreement]") {
  for (float const eps : {1e-5F, 0.0F}) {
    for (bool const has_bias : {false, true}) {
      for (int const gate : {0, 1, 2}) {
        auto trial = plain_trial({6}, 45);
        trial.zero_rows_every = 2;
        trial.problem.eps = eps;
        trial.problem.has_bias = has_bias;
        trial.problem.has_z = gate != 0;
        trial.problem.norm_before_gate = gate == 2;
        check_norm_trial(trial);
      }
    }
  }
}

// Squares, or gated values, beyond f32's range at either end.
TEST_CASE("norm: huge and tiny numbers agree", "[agreement]") {
  struct scales {
    double x, z;
    float eps;
  };
  for (auto const& [x, z, eps] : {scales{1e20, 2.0, 1e-5F},
                                  {1e30, 2.0, 0.0F},
                                  {1e37, 40.0, 1e-5F},
                                  {1e-12, 2.0, 0.0F},
                                  {1e-16, 2.0, 0.0F},
                                  {1e-18, 2.0, 0.0F},
                                  {1e-30, 2.0, 0.0F},
                                  {1e-30, 2.0, 1e-38F}}) {
    for (auto const io : {dtype::f32, dtype::bf16}) {
      for (int const gate : {0, 1, 2}) {
        auto trial = plain_trial({5}, 3 * 83);
        trial.scale = x;
        trial.z_scale = z;
        trial.problem.io = io;
        trial.problem.eps = eps;
        trial.problem.group_size = 83;
        trial.problem.has_z = gate != 0;
        trial.problem.norm_before_gate = gate == 2;
        INFO("x about " << x << ", gate " << gate);
        check_norm_trial(trial);
      }
    }
  }
}

TEST_CASE("norm: options agree in pairs", "[agreement]") {
  std::vector<int> const levels = {3, 2, 3, 2, 4, 4, 3, 2, 2};
  std::uint64_t seed = 200;
  for (auto const& row : pairwise_rows(levels)) {
    static std::vector<std::vector<std::int64_t>> const outer = {{9}, {2, 11}, {2, 1, 3}, {0}};
    auto trial = plain_trial(outer[std::size_t(row[5])], 126);
    trial.seed = ++seed;
    auto& problem = trial.problem;
    problem.io = std::vector{dtype::f32, dtype::bf16, dtype::f16}[std::size_t(row[0])];
    problem.weight = problem.bias = row[1] != 0 ? problem.io : dtype::f32;
    problem.has_z = row[2] != 0;
    problem.norm_before_gate = row[2] == 2;
    problem.has_bias = row[3] != 0;
    problem.group_size = std::vector<std::int64_t>{0, 126, 42, 18}[std::size_t(row[4])];
    trial.lies = std::vector{arrangement::packed, arrangement::padded,
                             arrangement::reversed}[std::size_t(row[6])];
    problem.eps = row[7] != 0 ? 1e-5F : 0.3F;
    trial.scale = row[8] != 0 ? 1.0 : 1e-3;
    check_norm_trial(trial);
  }
}

TEST_CASE("norm: neither layout nor threads change a bit", "[properties]") {
  for (auto const io : {dtype::f32, dtype::bf16}) {
    auto trial = plain_trial({3, 40}, 333);
    trial.problem.io = io;
    trial.problem.has_z = true;
    auto const expected = bits(run_norm_trial(trial).out.result());
    for (auto const lies :
         {arrangement::packed, arrangement::padded, arrangement::swapped, arrangement::reversed}) {
      for (int const threads : {0, 1}) {
        trial.lies = lies;
        trial.threads = threads;
        CHECK(bits(run_norm_trial(trial).out.result()) == expected);
      }
    }
  }
}

}  // namespace
}  // namespace mambatile::testing
