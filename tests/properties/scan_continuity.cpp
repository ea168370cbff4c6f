#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "evaluation/tensor_error.hpp"
#include "support/execute.hpp"
#include "support/scan_check.hpp"
#include "support/scan_oracle.hpp"
#include "support/scan_views.hpp"
#include "support/tested_backend.hpp"

// States handed on: cuts, snapshots, decay, steps of zero.

namespace mambatile::testing {
namespace {

scan_trial text_trial(dtype io) {
  scan_trial trial;
  trial.problem = {.max_batch = 2,
                   .max_seqlen = 150,
                   .nheads = 4,
                   .headdim = 18,
                   .ngroups = 2,
                   .dstate = 20,
                   .io = io,
                   .dt_softplus = true,
                   .D = skip::per_head,
                   .has_z = true,
                   .has_dt_bias = true,
                   .has_initial_states = true,
                   .has_final_states = true};
  trial.in_place = true;
  return trial;
}

// Runs the trial in pieces that begin at 0 and at each of `cuts`, each handing its states on in
// place, and checks the whole against the recurrence.
void check_cut(scan_trial const& trial, std::vector<std::int64_t> const& cuts) {
  INFO(repro_line(trial));
  std::string shown;
  for (auto const cut : cuts) shown += " " + std::to_string(cut);
  INFO("cut before tokens" << shown);
  scan_tensors const tensors(trial);
  auto const expected = expect_scan(trial.problem, tensors.images());
  tensors.upload();
  std::int64_t begin = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    auto const end = i < cuts.size() ? cuts[i] : trial.problem.max_seqlen;
    auto const piece = tokens_of(tensors.arguments(), begin, end - begin);
    execute(problem_for(piece, trial.problem), piece, trial.threads);
    begin = end;
  }
  tensors.download();
  tensors.check_guards();
  check_scan_results(trial.problem, expected, tensors.images(), tensors.results(),
                     limits_for(trial.problem, trial.regime));
}

TEST_CASE("scan: any cut of the text gives the whole", "[properties]") {
  for (auto const io : {dtype::f32, dtype::bf16}) {
    auto const trial = text_trial(io);
    // Every place of a chunk, empty and single-token pieces included.
    for (std::int64_t cut = 0; cut <= 70; ++cut) check_cut(trial, {cut});
    for (std::int64_t cut : {127, 128, 129, 148, 149, 150}) check_cut(trial, {cut});
    check_cut(trial, {1, 2, 3, 4});
    check_cut(trial, {16, 16, 33, 64, 97, 149});
  }
}

TEST_CASE("scan: token by token gives the whole", "[properties]") {
  auto trial = text_trial(dtype::f32);
  trial.problem.max_batch = 1;
  trial.problem.max_seqlen = 40;
  std::vector<std::int64_t> cuts;
  for (std::int64_t l = 1; l < trial.problem.max_seqlen; ++l) cuts.push_back(l);
  check_cut(trial, cuts);
}

TEST_CASE("scan: a cut in a text with seq_idx hands the last sequence's state on", "[properties]") {
  auto trial = text_trial(dtype::f32);
  trial.problem.pack = packing::seq_idx;
  trial.lengths = {31, 20, 45, 54};
  trial.padding_every = 9;
  // The first piece's last sequence goes on in the second: cut inside sequences only. The second
  // row enters the list of lengths elsewhere, so it runs alone.
  trial.problem.max_batch = 1;
  for (std::int64_t const cut : {5, 30, 40, 50, 60, 90, 94, 100}) check_cut(trial, {cut});
}

TEST_CASE("scan: results of two cuts are as close as two cuts may be", "[properties]") {
  // Not through the recurrence: the two against each other.
  auto trial = text_trial(dtype::f32);
  auto const run = [&](std::vector<std::int64_t> const& cuts) {
    scan_tensors const tensors(trial);
    tensors.upload();
    std::int64_t begin = 0;
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
      auto const end = i < cuts.size() ? cuts[i] : trial.problem.max_seqlen;
      auto const piece = tokens_of(tensors.arguments(), begin, end - begin);
      execute(problem_for(piece, trial.problem), piece);
      begin = end;
    }
    tensors.download();
    return tensors;
  };
  auto const whole = run({});
  auto const limits = limits_for(trial.problem, trial.regime);
  for (auto const& cuts : std::vector<std::vector<std::int64_t>>{{75}, {1, 2, 100}}) {
    auto const cut = run(cuts);
    auto const out =
        evaluation::compare(cut.results().out, whole.results().out, evaluation::out_slices);
    auto const states = evaluation::compare(cut.results().final_states,
                                            whole.results().final_states, evaluation::state_slices);
    CHECK(out.finite);
    CHECK(out.slice <= 2 * limits.out.slice);
    CHECK(states.finite);
    CHECK(states.slice <= 2 * limits.states.slice);
  }
}

TEST_CASE("scan: a snapshot is the final state of the text up to there", "[properties]") {
  auto trial = text_trial(dtype::f32);
  trial.in_place = false;
  trial.problem.max_seqlen = 200;
  trial.problem.intermediate_every = 64;
  auto const whole = run_scan_trial(trial);
  auto const limits = limits_for(trial.problem, trial.regime);
  for (std::int64_t j = 0; j < 3; ++j) {
    scan_tensors const tensors(trial);
    tensors.upload();
    auto piece = tokens_of(tensors.arguments(), 0, 64 * (j + 1));
    piece.intermediate_states = {};
    auto problem = trial.problem;
    problem.intermediate_every = 0;
    execute(problem_for(piece, problem), piece);
    tensors.download();
    auto snapshot = slice(whole.results().intermediate_states, 1, j, 1);
    const_tensor_view row = snapshot;  // (b, h, p, n)
    row.rank = 4;
    for (std::size_t axis = 1; axis < 4; ++axis) {
      row.extents[axis] = snapshot.extents[axis + 1];
      row.strides[axis] = snapshot.strides[axis + 1];
    }
    auto const error =
        evaluation::compare(row, tensors.results().final_states, evaluation::state_slices);
    CHECK(error.finite);
    CHECK(error.slice <= 2 * limits.states.slice);
  }
}

TEST_CASE("scan: total_decay is the initial state's share of the final state", "[properties]") {
  // final = final from zero + total_decay * initial.
  auto trial = text_trial(dtype::f32);
  trial.in_place = false;
  trial.problem.has_total_decay = true;
  trial.problem.max_seqlen = 41;
  auto const given = run_scan_trial(trial);
  auto from_zero = trial;
  from_zero.problem.has_initial_states = false;
  auto const zero = run_scan_trial(from_zero);
  auto const initial = values(given.images().initial_states);
  auto const with = values(given.results().final_states);
  auto const without = values(zero.results().final_states);
  auto const decay = values(given.results().total_decay);
  CHECK(bits(zero.results().total_decay) == bits(given.results().total_decay));
  auto const heads = static_cast<std::int64_t>(decay.size());
  auto const state_size = static_cast<std::int64_t>(with.size()) / heads;
  evaluation::error_accumulator errors(heads);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(with.size()); ++i) {
    auto const at = static_cast<std::size_t>(i);
    auto const head = i / state_size;
    errors.add(head, without[at] + decay[static_cast<std::size_t>(head)] * initial[at], with[at]);
  }
  auto const error = errors.result();
  CHECK(error.finite);
  CHECK(error.slice <= 2 * limits_for(trial.problem, trial.regime).states.slice);
}

TEST_CASE("scan: steps of zero keep the state bit for bit", "[properties]") {
  for (auto const state : {dtype::f32, dtype::bf16, dtype::f16}) {
    scan_trial trial;
    trial.problem = {.max_batch = 2,
                     .max_seqlen = 150,
                     .nheads = 4,
                     .headdim = 18,
                     .ngroups = 2,
                     .dstate = 20,
                     .state = state,
                     // Whatever dt holds, the step is 0.
                     .dt_limit = {0.0F, 0.0F},
                     .has_initial_states = true,
                     .has_final_states = true,
                     .has_total_decay = true,
                     .intermediate_every = 64};
    auto const tensors = run_scan_trial(trial);
    auto const results = tensors.results();
    auto const initial = bits(tensors.images().initial_states);
    CHECK(bits(results.final_states) == initial);
    for (double const decay : values(results.total_decay)) CHECK(decay == 1.0);
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t j = 0; j < 2; ++j) {
        auto const snapshot = slice(slice(results.intermediate_states, 0, b, 1), 1, j, 1);
        CHECK(bits(snapshot) == bits(slice(tensors.images().initial_states, 0, b, 1)));
      }
    }
    check_scan(trial);
  }
}

TEST_CASE("scan: a long text stays accurate", "[properties]") {
  for (auto const* regime : {"normal", "cliff"}) {
    scan_trial trial;
    trial.regime = regime;
    trial.problem = {.max_batch = 1,
                     .max_seqlen = 33001,
                     .nheads = 1,
                     .headdim = 3,
                     .dstate = 5,
                     .dt_softplus = true,
                     .has_initial_states = true,
                     .has_final_states = true};
    check_scan(trial);
  }
}

}  // namespace
}  // namespace mambatile::testing
