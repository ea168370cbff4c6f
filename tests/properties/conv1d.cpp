#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/conv1d.hpp>

#include "support/conv1d_trial.hpp"
#include "support/execute.hpp"

// What must not change a bit of the convolution: cuts, layouts, threads, neighbours, speculation.

namespace mambatile::testing {
namespace {

conv1d_trial plain_trial(dtype io, std::int64_t seqlen, std::int64_t spare_columns = 0) {
  conv1d_trial trial;
  trial.problem = {.max_batch = 2,
                   .max_seqlen = seqlen,
                   .channels = 39,
                   .state_len = 3 + spare_columns,
                   .io = io,
                   .weight = dtype::f32,
                   .state = io,
                   .act = activation::silu,
                   .has_bias = true,
                   .has_initial_states = true,
                   .has_final_states = true};
  trial.problem.bias = dtype::f32;
  trial.in_place = true;
  return trial;
}

// The call on tokens [begin, begin + count) alone.
conv1d_update_arguments tokens_of(conv1d_update_arguments arguments, std::int64_t begin,
                                  std::int64_t count) {
  arguments.x = slice(arguments.x, 1, begin, count);
  arguments.out = slice(arguments.out, 1, begin, count);
  return arguments;
}

void run_part(conv1d_update_arguments const& arguments, bool is_update) {
  if (is_update) {
    execute(make_problem(arguments, conv1d_update_options{.act = activation::silu}), arguments);
  } else {
    auto const part = without_speculation(arguments);
    execute(make_problem(part, conv1d_options{.act = activation::silu}), part);
  }
}

TEST_CASE("conv1d: any cut of the tokens gives the same bits", "[properties]") {
  for (auto const io : {dtype::f32, dtype::bf16}) {
    for (std::int64_t const spare_columns : {0, 4}) {
      auto const trial = plain_trial(io, 41, spare_columns);
      auto const whole = run_conv1d_trial(trial).output_bits();
      for (std::int64_t cut = 0; cut <= trial.problem.max_seqlen; ++cut) {
        for (bool const is_update : {false, true}) {
          conv1d_tensors const tensors(trial);
          tensors.upload();
          auto const all = tensors.arguments();
          run_part(tokens_of(all, 0, cut), is_update);
          run_part(tokens_of(all, cut, trial.problem.max_seqlen - cut), !is_update);
          tensors.download();
          INFO("cut after " << cut << " tokens, update first " << is_update);
          CHECK(tensors.output_bits() == whole);
        }
      }
    }
  }
}

TEST_CASE("conv1d: a prefill and steps of a few tokens give the one-shot's bits", "[properties]") {
  for (std::int64_t const step : {1, 2, 3, 5}) {
    auto const trial = plain_trial(dtype::f32, 60);
    auto const whole = run_conv1d_trial(trial).output_bits();
    conv1d_tensors const tensors(trial);
    tensors.upload();
    auto const all = tensors.arguments();
    run_part(tokens_of(all, 0, 30), false);
    for (std::int64_t token = 30; token < 60; token += step) {
      run_part(tokens_of(all, token, step), true);
    }
    tensors.download();
    INFO("steps of " << step);
    CHECK(tensors.output_bits() == whole);
  }
}

TEST_CASE("conv1d: neither layout nor threads change a bit", "[properties]") {
  for (auto const io : {dtype::f32, dtype::bf16, dtype::f16}) {
    for (std::int64_t const seqlen : {1, 5, 90}) {
      auto trial = plain_trial(io, seqlen);
      trial.problem.channels = 300;
      auto const expected = run_conv1d_trial(trial).output_bits();
      for (auto const layout : {conv1d_layout::channels, conv1d_layout::tokens,
                                conv1d_layout::slice, conv1d_layout::scattered}) {
        for (auto const states : {arrangement::packed, arrangement::transposed}) {
          for (int const threads : {0, 1}) {
            trial.layout = layout;
            trial.states = states;
            trial.threads = threads;
            INFO("layout " << static_cast<int>(layout) << ", states " << to_string(states)
                           << ", threads " << threads << ", seqlen " << seqlen);
            CHECK(run_conv1d_trial(trial).output_bits() == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("conv1d: columns of a wider buffer give the bits of a copy", "[properties]") {
  for (auto const io : {dtype::f32, dtype::bf16}) {
    for (std::int64_t const seqlen : {1, 6, 40}) {
      auto trial = plain_trial(io, seqlen);
      auto const expected = run_conv1d_trial(trial).output_bits();
      trial.layout = conv1d_layout::slice;
      for (std::int64_t const spare : {0, 1, 2, 9, 25, 64}) {
        for (std::int64_t const begin : {0, 1, 3, 8, 15}) {
          trial.slice_spare = spare;
          trial.slice_begin = begin;
          INFO("pitch " << 39 + spare << ", from element " << begin << ", seqlen " << seqlen);
          CHECK(run_conv1d_trial(trial).output_bits() == expected);
        }
      }
    }
  }
}

TEST_CASE("conv1d: a sequence's bits do not depend on its neighbours", "[properties]") {
  conv1d_trial packed = plain_trial(dtype::f32, 70);
  packed.problem.pack = packing::cu_seqlens;
  packed.problem.max_batch = 1;
  packed.lengths = {1, 40, 0, 2, 20};
  packed.problem.max_sequences = 5;
  auto const together = run_conv1d_trial(packed);
  std::int64_t begin = 0;
  for (std::int64_t sequence = 0; sequence < 5; ++sequence) {
    auto const count = packed.lengths[static_cast<std::size_t>(sequence)];
    conv1d_tensors const alone(packed);
    alone.upload();
    auto part = tokens_of(alone.arguments(), begin, count);
    part.cu_seqlens = {};
    part.initial_states = slice(part.initial_states, 0, sequence, 1);
    part.final_states = slice(part.final_states, 0, sequence, 1);
    run_part(part, false);
    alone.download();
    INFO("sequence " << sequence);
    CHECK(bits(slice(alone.out.result(), 1, begin, count)) ==
          bits(slice(together.out.result(), 1, begin, count)));
    CHECK(bits(slice(alone.final_states.result(), 0, sequence, 1)) ==
          bits(slice(together.final_states.result(), 0, sequence, 1)));
    begin += count;
  }
}

// Tokens [0, 19) in calls of four, each of which may have its last tokens taken back by the next.
// In the end it is as if only what was accepted had ever been seen.
class speculation {
 public:
  static constexpr std::int64_t tokens = 19;
  static constexpr std::int64_t step = 4;

  explicit speculation(conv1d_trial const& trial) : trial_(trial), tensors_(trial) {
    tensors_.upload();
  }

  // `run(first token, tokens accepted of the call before)`.
  template <class Run>
  void go(Run const& run) {
    std::int64_t accepted = step;
    std::int64_t first = 0;
    std::int64_t turn = 0;
    while (first + step <= tokens) {
      run(first, accepted, turn);
      accepted = 1 + turn * 3 % step;
      first += accepted;
      ++turn;
    }
    tensors_.download();
  }

  [[nodiscard]] conv1d_tensors const& tensors() const { return tensors_; }
  [[nodiscard]] conv1d_update_arguments step_arguments(std::int64_t first) const {
    return tokens_of(tensors_.arguments(), first, step);
  }

 private:
  conv1d_trial trial_;
  conv1d_tensors tensors_;
};

test_tensor uploaded_indices(std::vector<std::int64_t> const& shape, std::int64_t value) {
  test_tensor tensor(dtype::i32, shape);
  tensor.fill([&] { return static_cast<double>(value); });
  tensor.upload();
  return tensor;
}

TEST_CASE("conv1d_update: rejected tokens leave no trace", "[properties]") {
  auto const expected = run_conv1d_trial(plain_trial(dtype::f32, speculation::tokens, 4));
  auto const same_out = [&](conv1d_tensors const& tensors) {
    CHECK(bits(tensors.out.result()) == bits(expected.out.result()));
  };
  SECTION("from a wide state") {
    speculation calls(plain_trial(dtype::f32, speculation::tokens, 4));
    calls.go([&](std::int64_t first, std::int64_t accepted, std::int64_t /*turn*/) {
      auto arguments = calls.step_arguments(first);
      auto const counts = uploaded_indices({2}, accepted);
      arguments.num_accepted = counts.view();
      run_part(arguments, true);
    });
    same_out(calls.tensors());
  }
  SECTION("from a ring") {
    auto const trial = plain_trial(dtype::f32, speculation::tokens, 4);
    speculation calls(trial);
    // A shifting state is a ring whose next token goes to column 0.
    std::int64_t start = trial.problem.state_len;
    calls.go([&](std::int64_t first, std::int64_t accepted, std::int64_t /*turn*/) {
      auto arguments = calls.step_arguments(first);
      auto const counts = uploaded_indices({2}, accepted);
      auto const ring = uploaded_indices({2}, first == 0 ? start : start + speculation::step);
      if (first != 0) start += accepted;
      arguments.cache_seqlens = ring.view();
      arguments.num_accepted = counts.view();
      run_part(arguments, true);
    });
    same_out(calls.tensors());
  }
  SECTION("from states per token") {
    auto const trial = plain_trial(dtype::f32, speculation::tokens, 4);
    speculation calls(trial);
    auto const& problem = trial.problem;
    // Slot 0 holds the initial state; the calls' tokens take turns in two sets of four.
    std::vector<test_tensor> kept;
    test_tensor pool(problem.state, {2 * 9, problem.channels, problem.state_len});
    pool.fill([] { return 0.0; });
    auto const initial = calls.tensors().initial_states.image();
    for (std::int64_t row = 0; row < 2; ++row) {
      auto const from = values(const_tensor_view(slice(initial, 0, row, 1)));
      auto const to = slice(pool.image(), 0, 9 * row, 1);
      std::size_t position = 0;
      for_each_offset(to,
                      [&](std::int64_t offset) { test_tensor::set(to, offset, from[position++]); });
    }
    pool.upload();
    calls.go([&](std::int64_t first, std::int64_t accepted, std::int64_t turn) {
      auto const slots = [&](std::int64_t which) {
        test_tensor table(dtype::i32, {2, speculation::step});
        std::int64_t position = 0;
        table.fill([&] {
          auto const row = position / speculation::step;
          auto const token = position++ % speculation::step;
          return static_cast<double>(9 * row + (which < 0 ? 0 : 1 + which % 2 * 4 + token));
        });
        table.upload();
        return table;
      };
      auto const source = slots(turn - 1), target = slots(turn);
      auto const counts = uploaded_indices({2}, accepted);
      auto arguments = calls.step_arguments(first);
      arguments.initial_states = pool.view();
      arguments.final_states = pool.view();
      arguments.state_source = source.view();
      arguments.state_target = target.view();
      arguments.num_accepted = counts.view();
      run_part(arguments, true);
    });
    same_out(calls.tensors());
  }
}

TEST_CASE("conv1d: what was never given is never read", "[properties]") {
  // NaN in every slot, and rows that start from zero: no state at all must give the same.
  auto trial = plain_trial(dtype::f32, 9);
  trial.is_update = true;
  trial.in_place = false;
  conv1d_tensors const tensors(trial);
  tensors.upload();
  auto arguments = tensors.arguments();
  test_tensor pool(dtype::f32, {4, trial.problem.channels, trial.problem.state_len});
  pool.upload();
  auto const none = uploaded_indices({2}, -1);
  arguments.initial_states = pool.view();
  arguments.state_source = none.view();
  run_part(arguments, true);
  tensors.download();

  conv1d_tensors const zeros(trial);
  zeros.upload();
  auto without = zeros.arguments();
  without.initial_states = {};
  run_part(without, true);
  zeros.download();
  CHECK(tensors.output_bits() == zeros.output_bits());
}

}  // namespace
}  // namespace mambatile::testing
