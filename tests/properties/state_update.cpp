#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "evaluation/tensor_error.hpp"
#include "support/execute.hpp"
#include "support/random_numbers.hpp"
#include "support/scan_check.hpp"
#include "support/scan_oracle.hpp"
#include "support/scan_views.hpp"
#include "support/update_check.hpp"

// What holds between calls of state_update, and between it and chunk_scan.

namespace mambatile::testing {
namespace {

// The scan's call as updates: all tokens at once, states from and to final_states.
state_update_arguments as_update(scan_arguments const& scan) {
  state_update_arguments update;
  update.x = scan.x;
  update.dt = scan.dt;
  update.A = scan.A;
  update.B = scan.B;
  update.C = scan.C;
  update.D = scan.D;
  update.z = scan.z;
  update.dt_bias = scan.dt_bias;
  update.initial_states = update.final_states = scan.final_states;
  update.out = scan.out;
  return update;
}

struct text_piece {
  std::int64_t tokens;
  bool by_update;
};

scan_trial text_trial(std::int64_t seqlen, arrangement states) {
  scan_trial trial;
  trial.problem = {.max_batch = 2,
                   .max_seqlen = seqlen,
                   .nheads = 4,
                   .headdim = 18,
                   .ngroups = 2,
                   .dstate = 20,
                   .dt_softplus = true,
                   .dt_limit = {0.002F, 0.06F},
                   .D = skip::per_channel,
                   .has_z = true,
                   .has_dt_bias = true,
                   .has_initial_states = true,
                   .has_final_states = true};
  trial.in_place = true;
  trial.states = states;
  return trial;
}

// Does the text in pieces that hand the states on, and checks the whole against the recurrence,
// within the limits for two ways of cutting the same text.
void check_pieces(scan_trial const& trial, std::vector<text_piece> const& pieces) {
  INFO(repro_line(trial));
  std::string shown;
  for (auto const& piece : pieces) {
    shown += (piece.by_update ? " update " : " scan ") + std::to_string(piece.tokens);
  }
  INFO("in pieces:" << shown);
  scan_tensors const tensors(trial);
  auto const expected = expect_scan(trial.problem, tensors.images());
  tensors.upload();
  std::int64_t begin = 0;
  for (auto const& piece : pieces) {
    auto const part = tokens_of(tensors.arguments(), begin, piece.tokens);
    if (piece.by_update) {
      auto const update = as_update(part);
      execute(make_problem(update, {.dt_softplus = true, .dt_limit = trial.problem.dt_limit}),
              update, trial.threads);
    } else {
      execute(problem_for(part, trial.problem), part, trial.threads);
    }
    begin += piece.tokens;
  }
  REQUIRE(begin == trial.problem.max_seqlen);
  tensors.download();
  tensors.check_guards();
  check_scan_results(trial.problem, expected, tensors.images(), tensors.results(),
                     limits_for(trial.problem, trial.regime));
}

TEST_CASE("state_update: goes on from every place of a chunk", "[properties]") {
  for (std::int64_t prefill = 0; prefill <= 64; ++prefill) {
    auto const trial =
        text_trial(66, prefill % 2 == 0 ? arrangement::packed : arrangement::transposed);
    // Token by token where few are left, else in two calls of several.
    std::vector<text_piece> pieces = {{prefill, false}};
    auto left = trial.problem.max_seqlen - prefill;
    if (left > 12) {
      pieces.push_back({left / 2, true});
      pieces.push_back({left - left / 2, true});
      left = 0;
    }
    for (; left > 0; --left) pieces.push_back({1, true});
    check_pieces(trial, pieces);
  }
}

TEST_CASE("state_update: any cut of a text into scans and updates gives the whole",
          "[properties]") {
  random_numbers numbers(5, "cuts");
  for (int round = 0; round < 8; ++round) {
    auto const trial =
        text_trial(300, round % 2 == 0 ? arrangement::packed : arrangement::transposed);
    std::vector<text_piece> pieces;
    std::int64_t left = trial.problem.max_seqlen;
    while (left > 0) {
      bool const by_update = numbers.uniform() < 0.6;
      auto const tokens = std::min(left, numbers.index(by_update ? 6 : 90));
      pieces.push_back({tokens, by_update});
      left -= tokens;
    }
    check_pieces(trial, pieces);
  }
}

TEST_CASE("chunk_scan: a mixed batch gives what prompts and single tokens give apart",
          "[properties]") {
  // One prompt, then rows of one token each, in one packed call.
  constexpr std::int64_t prompt = 90;
  constexpr std::int64_t rows = 17;
  auto trial = text_trial(prompt + rows, arrangement::transposed);
  trial.problem.max_batch = 1;
  trial.problem.pack = packing::cu_seqlens;
  trial.lengths.assign(rows + 1, 1);
  trial.lengths.front() = prompt;
  trial.problem.max_sequences = rows + 1;
  auto const mixed = run_scan_trial(trial);

  scan_tensors const apart(trial);
  apart.upload();
  auto first = tokens_of(apart.arguments(), 0, prompt);
  first.cu_seqlens = {};
  first.initial_states = slice(first.initial_states, 0, 0, 1);
  first.final_states = slice(first.final_states, 0, 0, 1);
  auto like = trial.problem;
  like.pack = packing::dense;
  like.max_sequences = 0;
  execute(problem_for(first, like), first);
  // Tokens of the packed row become rows.
  auto update = as_update(tokens_of(apart.arguments(), prompt, rows));
  auto const as_rows = [](auto& view) {
    std::swap(view.extents[0], view.extents[1]);
    std::swap(view.strides[0], view.strides[1]);
  };
  for (auto* view : {&update.x, &update.dt, &update.B, &update.C, &update.z}) as_rows(*view);
  as_rows(update.out);
  update.final_states = slice(update.final_states, 0, 1, rows);
  update.initial_states = update.final_states;
  execute(make_problem(update, {.dt_softplus = true, .dt_limit = trial.problem.dt_limit}), update);
  apart.download();
  auto const limits = limits_for(trial.problem, trial.regime);
  auto const results = apart.results();
  CHECK(evaluation::compare(mixed.results().out, results.out, evaluation::out_slices)
            .within(limits.out));
  CHECK(evaluation::compare(mixed.results().final_states, results.final_states,
                            evaluation::state_slices)
            .within(limits.states));
}

TEST_CASE("state_update: bits depend neither on neighbours nor on threads", "[properties]") {
  for (auto const order : {arrangement::packed, arrangement::transposed}) {
    update_trial trial;
    trial.problem = {.max_batch = 3,
                     .max_seqlen = 2,
                     .nheads = 3,
                     .headdim = 100,
                     .ngroups = 1,
                     .dstate = 37,
                     .dt_softplus = true,
                     .has_z = true,
                     .has_initial_states = true,
                     .has_final_states = true};
    trial.states = order;
    auto const together = run_update_trial(trial);
    auto const again = run_update_trial(trial);
    CHECK(bits(together.results().out) == bits(again.results().out));
    CHECK(bits(together.results().final_states) == bits(again.results().final_states));
    for (std::int64_t row = 0; row < trial.problem.max_batch; ++row) {
      update_tensors const alone(trial);
      alone.upload();
      auto call = alone.arguments();
      for (auto* view : {&call.x, &call.dt, &call.B, &call.C, &call.z, &call.initial_states}) {
        *view = slice(*view, 0, row, 1);
      }
      call.out = slice(call.out, 0, row, 1);
      call.final_states = slice(call.final_states, 0, row, 1);
      execute(problem_of(trial, call), call, 1);
      alone.download();
      auto const row_bits = [&](const_tensor_view const& view) {
        return bits(slice(view, 0, row, 1));
      };
      CHECK(row_bits(alone.results().out) == row_bits(together.results().out));
      CHECK(row_bits(alone.results().final_states) == row_bits(together.results().final_states));
    }
  }
}

TEST_CASE("state_update: a step of zero keeps the state's bits", "[properties]") {
  for (auto const state : {dtype::f32, dtype::bf16, dtype::f16}) {
    update_trial trial;
    trial.problem = {.max_batch = 2,
                     .max_seqlen = 1,
                     .nheads = 2,
                     .headdim = 17,
                     .dstate = 33,
                     .state = state,
                     .has_initial_states = true,
                     .has_final_states = true};
    // A state that a 16-bit type can hold stays as it is, however it is rounded.
    for (auto const how : {rounding::nearest, rounding::stochastic}) {
      if (how == rounding::stochastic && state == dtype::f32) continue;
      trial.problem.state_rounding = how;
      update_tensors tensors(trial);
      tensors.dt.fill([] { return 0.0; });
      tensors.upload();
      execute(trial.problem, tensors.arguments());
      tensors.download();
      CHECK(bits(tensors.results().final_states) == bits(tensors.images().initial_states));
    }
  }
}

update_trial stochastic_trial(dtype state) {
  update_trial trial;
  trial.problem = {.max_batch = 4,
                   .max_seqlen = 1,
                   .nheads = 2,
                   .headdim = 20,
                   .dstate = 24,
                   .state = state,
                   .has_initial_states = true,
                   .has_final_states = true,
                   .state_rounding = rounding::stochastic,
                   .has_row_ids = true};
  return trial;
}

TEST_CASE("state_update: stochastic rounding depends on seed and row id alone", "[properties]") {
  for (auto const state : {dtype::bf16, dtype::f16}) {
    auto const trial = stochastic_trial(state);
    auto const states_with = [&](std::uint64_t seed, std::vector<std::int64_t> const& rows) {
      update_tensors const tensors(trial);
      tensors.upload();
      auto call = tensors.arguments();
      call.rounding_seed = seed;
      std::vector<std::vector<std::uint32_t>> found;
      // One row after the other: each is alone in its batch.
      for (auto const row : rows) {
        auto one = call;
        for (auto* view : {&one.x, &one.dt, &one.B, &one.C, &one.initial_states, &one.row_ids}) {
          *view = slice(*view, 0, row, 1);
        }
        one.out = slice(one.out, 0, row, 1);
        one.final_states = slice(one.final_states, 0, row, 1);
        execute(problem_of(trial, one), one);
      }
      tensors.download();
      for (auto const row : rows) {
        found.push_back(bits(slice(tensors.results().final_states, 0, row, 1)));
      }
      return found;
    };
    auto const together = run_update_trial(trial);
    auto const alone = states_with(together.arguments().rounding_seed, {3, 1, 0, 2});
    std::size_t index = 0;
    for (auto const row : {3, 1, 0, 2}) {
      CHECK(alone[index++] == bits(slice(together.results().final_states, 0, row, 1)));
    }
    CHECK(states_with(1, {0}) == states_with(1, {0}));
    CHECK(states_with(1, {0}) != states_with(2, {0}));
  }
}

TEST_CASE("state_update: stochastic rounding has no bias", "[properties]") {
  for (auto const state : {dtype::bf16, dtype::f16}) {
    auto trial = stochastic_trial(state);
    auto exact_trial = trial;
    exact_trial.problem.state_rounding = rounding::nearest;
    exact_trial.problem.has_row_ids = false;
    exact_trial.problem.state = dtype::f32;
    update_tensors exact(exact_trial);
    update_tensors const rounded(trial);
    // The same initial states, with the 16-bit values.
    auto const initial = values(rounded.initial_states.image());
    std::size_t next = 0;
    exact.initial_states.fill([&] { return initial[next++]; });
    exact.upload();
    execute(exact_trial.problem, exact.arguments());
    exact.download();
    auto const want = values(exact.results().final_states);
    double const step = state == dtype::bf16 ? 0x1p-8 : 0x1p-11;

    constexpr int rounds = 200;
    std::vector<double> sum(want.size(), 0.0);
    for (int round = 0; round < rounds; ++round) {
      rounded.upload();
      auto call = rounded.arguments();
      call.rounding_seed = static_cast<std::uint64_t>(round);
      execute(trial.problem, call);
      rounded.download();
      auto const got = values(rounded.results().final_states);
      for (std::size_t i = 0; i < want.size(); ++i) sum[i] += got[i];
    }
    // A result is one of two neighbours, at most 2 steps of its magnitude apart: the mean of all
    // draws is off by less than five of its standard deviations. Nearest rounding is not: its mean
    // over the draws of one element is off by up to half a step.
    double of_all = 0;
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      double const error = (sum[i] / rounds - want[i]) / (step * std::fabs(want[i]));
      of_all += error;
      worst = std::max(worst, std::fabs(error));
    }
    INFO(to_string(state) << ": mean error " << of_all / static_cast<double>(want.size())
                          << ", worst of an element " << worst << " steps");
    CHECK(std::fabs(of_all / static_cast<double>(want.size())) <
          5 / std::sqrt(static_cast<double>(rounds) * static_cast<double>(want.size())));
    CHECK(worst < 5.5 / std::sqrt(static_cast<double>(rounds)));
  }
}

}  // namespace
}  // namespace mambatile::testing
