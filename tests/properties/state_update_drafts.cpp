#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "evaluation/tensor_error.hpp"
#include "support/execute.hpp"
#include "support/random_numbers.hpp"
#include "support/update_check.hpp"

// Drafted tokens of which some or all are rejected, over several calls of state_update.

namespace mambatile::testing {
namespace {

update_trial slot_trial(dtype state) {
  update_trial trial;
  trial.problem = {.max_batch = 5,
                   .max_seqlen = 4,
                   .nheads = 4,
                   .headdim = 19,
                   .ngroups = 2,
                   .dstate = 24,
                   .state = state,
                   .dt_softplus = true,
                   .D = skip::per_head,
                   .has_dt_bias = true,
                   .has_initial_states = true,
                   .has_final_states = true,
                   .has_state_source = true,
                   .has_state_target = true,
                   .per_token_source = true,
                   .per_token_target = true};
  trial.stored = 4;
  trial.in_place = true;
  return trial;
}

// Tokens [begin, begin + count) of every row.
state_update_arguments tokens_of(state_update_arguments call, std::int64_t begin,
                                 std::int64_t count) {
  for (auto* view : {&call.x, &call.dt, &call.B, &call.C, &call.z}) {
    *view = slice(*view, 1, begin, count);
  }
  call.out = slice(call.out, 1, begin, count);
  return call;
}

TEST_CASE("state_update: rejected tokens leave no trace", "[properties]") {
  // Four tokens are drafted, two of them count; the next call starts behind those.
  for (auto const state : {dtype::f32, dtype::bf16}) {
    auto trial = slot_trial(state);
    update_tensors const drafted(trial);
    drafted.upload();
    execute(trial.problem, drafted.arguments());
    auto accepted = drafted.arguments();
    test_tensor counts(dtype::i32, {trial.problem.max_batch});
    counts.fill([] { return 2.0; }).upload();
    accepted.num_accepted = counts.view();
    // Rows read what they have just written: the table of targets is the table of sources.
    accepted.state_source = accepted.state_target;
    auto const second = tokens_of(accepted, 3, 1);
    auto last = second;
    last.state_target = slice(second.state_target, 1, 3, 1);
    execute(problem_of(trial, last), last);
    drafted.download();

    // The same without the rejected tokens.
    update_tensors const plain(trial);
    plain.upload();
    auto const first = [&] {
      auto call = tokens_of(plain.arguments(), 0, 2);
      call.state_target = slice(call.state_target, 1, 0, 2);
      return call;
    }();
    execute(problem_of(trial, first), first);
    auto behind = tokens_of(plain.arguments(), 3, 1);
    behind.state_source = plain.arguments().state_target;
    behind.num_accepted = counts.view();
    behind.state_target = slice(plain.arguments().state_target, 1, 3, 1);
    execute(problem_of(trial, behind), behind);
    plain.download();
    auto const out = [](update_tensors const& tensors) {
      return bits(slice(tensors.results().out, 1, 3, 1));
    };
    CHECK(out(drafted) == out(plain));
    auto const slots = values(drafted.state_target.image());
    for (std::int64_t row = 0; row < trial.problem.max_batch; ++row) {
      auto const slot = static_cast<std::int64_t>(slots[static_cast<std::size_t>(row * 4 + 3)]);
      if (slot < 0) continue;
      CHECK(bits(slice(drafted.results().final_states, 0, slot, 1)) ==
            bits(slice(plain.results().final_states, 0, slot, 1)));
    }
  }
}

TEST_CASE("state_update: drafts that are all rejected leave no trace", "[properties]") {
  // Slot `row * 5` holds what a row starts from, the four behind it the states of its drafts: the
  // whole table is what the next call may start from. Its num_accepted takes row after row back to
  // the start.
  for (auto const state : {dtype::f32, dtype::bf16}) {
    auto trial = slot_trial(state);
    trial.problem.max_batch = 3;
    trial.stored = 5;
    trial.problem.source_has_start = true;
    constexpr std::int64_t drafts = 4;
    update_tensors const tensors(trial);
    test_tensor table(dtype::i32, {3, 1 + drafts}), counts(dtype::i32, {3}), none(dtype::i32, {3});
    std::int64_t next = 0;
    table.fill([&] { return static_cast<double>(next++); }).upload();
    next = 0;
    // Row 0 keeps none of its drafts, row 1 one, row 2 two.
    counts.fill([&] { return static_cast<double>(next++); }).upload();
    none.fill([] { return 0.0; }).upload();
    test_tensor pool(state, {3 * (1 + drafts), 4, 19, 24}, trial.states);
    random_numbers numbers(7, "pool");
    pool.fill([&] { return numbers.normal(); }).upload();
    tensors.upload();
    auto call = tensors.arguments();
    call.initial_states = call.final_states = pool.view();
    call.state_source = table.view();
    call.state_target = slice(table.view(), 1, 1, drafts);
    call.num_accepted = none.view();
    auto const problem_with_start = [&](state_update_arguments const& of) {
      auto problem = problem_of(trial, of);
      problem.source_has_start = true;
      return problem;
    };
    execute(problem_with_start(call), call);
    auto second = tokens_of(call, 3, 1);
    second.num_accepted = counts.view();
    second.final_states = {};
    second.state_target = {};
    execute(problem_with_start(second), second);
    tensors.download();
    auto const got = bits(slice(tensors.results().out, 1, 3, 1));

    // The same tokens with nothing rejected.
    for (std::int64_t row = 0; row < 3; ++row) {
      update_tensors const plain(trial);
      plain.upload();
      pool.upload();
      auto kept = plain.arguments();
      for (auto* view : {&kept.x, &kept.dt, &kept.B, &kept.C}) *view = slice(*view, 0, row, 1);
      kept.out = slice(kept.out, 0, row, 1);
      kept.state_source = kept.state_target = kept.num_accepted = {};
      kept.initial_states = slice(const_tensor_view(pool.view()), 0, row * (1 + drafts), 1);
      kept.final_states = slice(pool.view(), 0, row * (1 + drafts), 1);
      auto const first = tokens_of(kept, 0, row);
      if (row > 0) execute(problem_of(trial, first), first);
      auto const last = tokens_of(kept, 3, 1);
      execute(problem_of(trial, last), last);
      plain.download();
      auto const want = bits(slice(slice(plain.results().out, 0, row, 1), 1, 3, 1));
      auto const size = static_cast<std::ptrdiff_t>(want.size());
      INFO("row " << row << ", states " << to_string(state));
      CHECK(std::equal(want.begin(), want.end(), got.begin() + row * size));
    }
  }
}

TEST_CASE("state_update: one table serves any run of accepted and rejected drafts",
          "[properties]") {
  // The accepted slot is swapped to the front, so that no call writes what it started from.
  auto trial = slot_trial(dtype::f32);
  trial.problem.max_batch = 1;
  trial.problem.max_seqlen = 15;
  trial.problem.source_has_start = true;
  trial.stored = 5;
  constexpr std::int64_t drafts = 4;
  update_tensors const tensors(trial);
  tensors.upload();
  test_tensor table(dtype::i32, {1, 1 + drafts}), front(dtype::i32, {1});
  front.fill([] { return 0.0; }).upload();
  test_tensor pool(dtype::f32, {1 + drafts, 4, 19, 24}, trial.states);
  random_numbers numbers(11, "pool");
  pool.fill([&] { return numbers.normal(); }).upload();

  std::vector<std::int64_t> slots = {0, 1, 2, 3, 4};
  std::int64_t position = 0;
  for (std::int64_t const accepted : {2, 0, 0, 4, 1, 0, 3, 0, 1}) {
    std::size_t next = 0;
    table.fill([&] { return static_cast<double>(slots[next++]); }).upload();
    auto call = tokens_of(tensors.arguments(), position, drafts);
    call.initial_states = call.final_states = pool.view();
    call.state_source = table.view();
    call.state_target = slice(table.view(), 1, 1, drafts);
    call.num_accepted = front.view();
    auto problem = problem_of(trial, call);
    problem.source_has_start = true;
    execute(problem, call);
    std::swap(slots[0], slots[static_cast<std::size_t>(accepted)]);
    position += accepted;
  }
  tensors.download();

  // The accepted tokens in one call.
  update_tensors const plain(trial);
  plain.upload();
  pool.upload();
  auto whole = tokens_of(plain.arguments(), 0, position);
  whole.state_source = whole.state_target = whole.num_accepted = {};
  whole.initial_states = slice(const_tensor_view(pool.view()), 0, 0, 1);
  whole.final_states = {};
  execute(problem_of(trial, whole), whole);
  plain.download();
  CHECK(evaluation::compare(slice(tensors.results().out, 1, 0, position),
                            slice(plain.results().out, 1, 0, position), evaluation::out_slices)
            .within(limits_for(trial.problem).out));
}

}  // namespace
}  // namespace mambatile::testing
