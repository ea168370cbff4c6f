#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/conv1d.hpp>
#include <mambatile/norm.hpp>

#include "support/conv1d_trial.hpp"
#include "support/execute.hpp"
#include "support/refusals.hpp"
#include "support/tested_backend.hpp"

// Rules of the convolutions: the message, and that nothing was written.

namespace mambatile::testing {
namespace {

using words = std::vector<std::string>;

conv1d_update_problem plain_problem() {
  return {.max_batch = 3,
          .max_seqlen = 4,
          .channels = 10,
          .state_len = 5,
          .has_bias = true,
          .has_initial_states = true,
          .has_final_states = true};
}

TEST_CASE("conv1d: problems that break a rule", "[errors]") {
  struct rule {
    std::function<void(conv1d_update_problem&)> set;
    words expected;
    bool update_only = false;
  };
  std::vector<rule> const rules = {
      {[](auto& p) { p.max_batch = -1; }, {"max_batch = -1", "negative"}},
      {[](auto& p) { p.max_seqlen = -2; }, {"max_seqlen = -2", "negative"}},
      {[](auto& p) { p.channels = -3; }, {"channels = -3", "negative"}},
      {[](auto& p) { p.threads = -1; }, {"threads = -1", "negative"}},
      {[](auto& p) { p.width = 0; }, {"width = 0", "at least 1"}},
      {[](auto& p) { p.state_len = 2; }, {"state_len = 2", "width - 1 = 3"}},
      {[](auto& p) { p.io = dtype::i32; }, {"io = i32", "f32, bf16 or f16"}},
      {[](auto& p) { p.weight = dtype::bf16; }, {"weight = bf16", "io type f32"}},
      {[](auto& p) { p.bias = dtype::f16; }, {"bias = f16", "io type f32"}},
      {[](auto& p) { p.state = dtype::bf16; }, {"state = bf16", "io type f32"}},
      {[](auto& p) {
         p.circular = true;
         p.has_initial_states = p.has_final_states = false;
       },
       {"circular = true", "has_initial_states"}},
      {[](auto& p) {
         p.circular = true;
         p.width = 1;
         p.state_len = 0;
       },
       {"state_len = 0", "circular"}},
      {[](auto& p) {
         p.has_state_source = true;
         p.has_initial_states = false;
       },
       {"has_state_source = true", "has_initial_states"}},
      {[](auto& p) {
         p.has_state_target = true;
         p.has_final_states = false;
       },
       {"has_state_target = true", "has_final_states"}},
      {[](auto& p) { p.pack = packing::cu_seqlens; }, {"max_batch = 3", "one row"}},
      {[](auto& p) { p.max_sequences = 2; }, {"max_sequences = 2", "pack = dense"}},
      {[](auto& p) {
         p.has_num_accepted = true;
         p.has_initial_states = false;
       },
       {"has_num_accepted = true", "has_initial_states"},
       true},
      {[](auto& p) { p.per_token_source = true; }, {"per_token_source", "has_num_accepted"}, true},
      {[](auto& p) { p.source_has_start = true; }, {"source_has_start", "per_token_source"}, true},
      {[](auto& p) { p.has_num_previous = true; }, {"has_num_previous", "has_num_accepted"}, true},
      {[](auto& p) {
         p.per_token_target = true;
         p.has_final_states = false;
       },
       {"per_token_target = true", "has_final_states"},
       true},
      {[](auto& p) { p.max_targets = 4; }, {"max_targets = 4", "per_token_target"}, true},
      {[](auto& p) { p.skip_padding = true; }, {"skip_padding = true", "has_state_source"}, true},
  };
  for (auto const& each : rules) {
    auto problem = plain_problem();
    each.set(problem);
    check_refused(problem, each.expected);
    if (!each.update_only) check_refused(without_speculation(problem), each.expected);
  }
}

// Runs the trial after `spoil` and checks that it is refused in these words, and that no output
// changed.
template <class Exception = invalid_argument>
void check_refused_call(conv1d_trial const& trial,
                        std::function<void(conv1d_update_arguments&)> const& spoil,
                        words const& expected) {
  conv1d_tensors const tensors(trial);
  tensors.upload();
  auto arguments = tensors.arguments();
  spoil(arguments);
  auto const message = message_of<Exception>([&] { execute(trial, arguments); });
  check_message(
      message,
      trial.is_update ? conv1d_update_problem::operator_name : conv1d_problem::operator_name,
      expected);
  tensors.download();
  CHECK(tensors.outputs_are_untouched());
}

conv1d_trial plain_trial(bool is_update) {
  conv1d_trial trial;
  trial.problem = plain_problem();
  trial.is_update = is_update;
  return trial;
}

test_tensor uploaded(std::vector<std::int64_t> const& shape, std::vector<double> const& from) {
  test_tensor tensor(dtype::i32, shape);
  std::size_t position = 0;
  tensor.fill([&] { return from[position++]; });
  tensor.upload();
  return tensor;
}

TEST_CASE("conv1d: arguments that break a rule", "[errors]") {
  for (bool const is_update : {false, true}) {
    auto const trial = plain_trial(is_update);
    auto const refused = [&](std::function<void(conv1d_update_arguments&)> const& spoil,
                             words const& expected) { check_refused_call(trial, spoil, expected); };
    refused([](auto& a) { a.x = {}; }, {"x is absent"});
    refused([](auto& a) { a.weight = {}; }, {"weight is absent"});
    refused([](auto& a) { a.out = {}; }, {"out is absent"});
    refused([](auto& a) { a.bias = {}; }, {"bias is absent", "has_bias = true"});
    refused([](auto& a) { a.initial_states = {}; }, {"initial_states is absent"});
    refused([](auto& a) { a.final_states = {}; }, {"final_states is absent"});
    refused([](auto& a) { a.seq_idx = a.bias; }, {"seq_idx was given", "pack = dense"});
    refused([](auto& a) { a.cu_seqlens = a.bias; }, {"cu_seqlens was given", "pack = dense"});
    refused([](auto& a) { a.cu_seqlens = a.seq_idx = a.bias; }, {"cu_seqlens and seq_idx"});
    refused([](auto& a) { a.cache_seqlens = a.bias; }, {"cache_seqlens", "circular = false"});
    refused([](auto& a) { a.state_source = a.bias; }, {"state_source", "has_state_source = false"});
    refused([](auto& a) { a.weight.extents[1] = 3; },
            {"weight has shape (10, 3)", "(channels, width) = (10, 4)"});
    refused([](auto& a) { a.initial_states.extents[2] = 2; },
            {"initial_states has shape (3, 10, 2)", "(rows, channels, state_len) = (3, 10, 5)"});
    refused([](auto& a) { a.final_states.extents[1] = 9; },
            {"final_states has shape (3, 9, 5)", "(3, 10, 5)"});
    refused([](auto& a) { a.out.extents[1] = 3; }, {"out has shape (3, 3, 10)", "(3, 4, 10)"});
    refused([](auto& a) { a.x.type = dtype::bf16; }, {"x has type bf16", "expected f32"});
    refused([](auto& a) { a.x.data = nullptr; }, {"x has shape", "null"});
    refused([](auto& a) { a.x.extents[1] = a.out.extents[1] = 5; }, {"seqlen = 5", "max_seqlen"});
    refused([](auto& a) { a.out.strides[1] = 0; }, {"out", "overlap each other"});
    refused(
        [](auto& a) {
          a.out = a.final_states, a.out.extents = {3, 4, 10}, a.out.strides = {50, 10, 1};
        },
        {"final_states overlaps out"});
    refused(
        [](auto& a) {
          auto view = a.final_states;
          view.data = const_cast<void*>(a.initial_states.data);
          view.strides[0] = 0;
          view.extents = {3, 10, 5};
          view.strides = {50, 1, 10};
          a.final_states = view;
        },
        {"final_states overlaps initial_states", "identical"});
  }
}

TEST_CASE("conv1d_update: arguments that break a rule", "[errors]") {
  auto with_counts = plain_trial(true);
  with_counts.problem.has_num_accepted = true;
  check_refused_call(with_counts, [](auto& a) { a.num_accepted = {}; }, {"num_accepted is absent"});
  check_refused_call(with_counts, [](auto& a) { a.num_accepted.extents[0] = 2; },
                     {"num_accepted has shape (2)", "(rows) = (3)"});
  auto no_axis = plain_trial(true);
  check_refused_call(no_axis,
                     [](auto& a) {
                       a.x.rank = 2;
                       a.x.extents = {3, 10};
                     },
                     {"out has shape (3, 4, 10)", "(batch, channels)"});
}

TEST_CASE("make_problem: no rank is believed", "[errors]") {
  float number = 0;
  for (int const rank : {-1, max_rank + 1, 1 << 20}) {
    INFO("rank " << rank);
    conv1d_update_arguments update;
    update.x = make_view(&number, {1, 1, 1});
    update.weight = make_view(&number, {1, 1});
    update.final_states = make_view(&number, {1, 1, 1});
    update.final_states.rank = rank;
    auto message = message_of<invalid_argument>([&] { (void)make_problem(update); });
    check_message(message, "causal_conv1d_update",
                  {"final_states has shape", std::to_string(rank)});
    gated_rms_norm_arguments norm;
    norm.x = make_view(&number, {1, 1});
    norm.x.rank = rank;
    message = message_of<invalid_argument>([&] { (void)make_problem(norm); });
    check_message(message, "gated_rms_norm", {"x has shape", std::to_string(rank)});
  }
}

// Index arrays are checked where the host can read them.
TEST_CASE("conv1d: index arrays that break a rule", "[errors]") {
  if (!is_host_backend()) SKIP("index arrays on a device are not checked by execute");
  SECTION("slots") {
    for (bool const is_update : {false, true}) {
      auto trial = plain_trial(is_update);
      trial.problem.has_state_source = trial.problem.has_state_target = trial.in_place = true;
      auto const refused = [&](char which, std::vector<double> const& slots,
                               words const& expected) {
        auto const table = uploaded({3}, slots);
        check_refused_call(
            trial,
            [&](auto& a) { (which == 's' ? a.state_source : a.state_target) = table.view(); },
            expected);
      };
      refused('s', {0, 99, 1}, {"state_source[1] = 99", "9 slots"});
      refused('t', {0, 1, -2}, {"state_target[2] = -2", "-1 means none"});
      refused('t', {3, -1, 3}, {"state_target[0]", "state_target[2]", "slot 3", "at most once"});
      auto const sources = uploaded({3}, {5, -1, 0});
      auto const targets = uploaded({3}, {5, 0, 1});
      check_refused_call(trial,
                         [&](auto& a) {
                           a.state_source = sources.view();
                           a.state_target = targets.view();
                         },
                         {"row 2 reads slot 0", "state_target[1]"});
    }
  }
  SECTION("a slot per token written twice") {
    auto trial = plain_trial(true);
    trial.problem.max_seqlen = 2;
    trial.problem.has_state_target = trial.problem.per_token_target = true;
    trial.problem.max_targets = 2;
    auto const targets = uploaded({3, 2}, {0, 1, 2, 3, 1, 4});
    check_refused_call(trial, [&](auto& a) { a.state_target = targets.view(); },
                       {"state_target[0, 1]", "state_target[2, 0]", "slot 1"});
  }
  SECTION("num_accepted") {
    auto trial = plain_trial(true);
    trial.problem.has_num_accepted = true;
    auto const refused = [&](std::vector<double> const& counts, words const& expected) {
      auto const accepted = uploaded({3}, counts);
      check_refused_call(
          trial, [&](auto& a) { a.num_accepted = accepted.view(); }, expected);
    };
    refused({4, 5, 4}, {"num_accepted[1] = 5", "seqlen = 4"});
    refused({4, 4, -1}, {"num_accepted[2] = -1", "at least 0"});
    refused({1, 4, 4}, {"num_accepted[0] = 1", "takes back 3", "state_len = 5"});
    trial.problem.has_num_previous = true;
    auto const accepted = uploaded({3}, {3, 2, 1});
    auto const previous = uploaded({3}, {3, 1, 1});
    check_refused_call(trial,
                       [&](auto& a) {
                         a.num_accepted = accepted.view();
                         a.num_previous = previous.view();
                       },
                       {"num_accepted[1] = 2", "num_previous = 1"});
    auto const negative = uploaded({3}, {3, 2, -1});
    check_refused_call(trial,
                       [&](auto& a) {
                         a.num_accepted = accepted.view();
                         a.num_previous = negative.view();
                       },
                       {"num_previous[2] = -1", "negative"});
  }
  SECTION("num_accepted of states per token") {
    auto trial = plain_trial(true);
    trial.problem.has_num_accepted = trial.problem.per_token_source = true;
    trial.stored = 3;
    auto const refused = [&](double count, words const& expected) {
      auto const accepted = uploaded({3}, {1, count, 2});
      check_refused_call(
          trial, [&](auto& a) { a.num_accepted = accepted.view(); }, expected);
    };
    refused(0, {"num_accepted[1] = 0", "initial_states", "source_has_start"});
    refused(4, {"num_accepted[1] = 4", "1 to 3"});
    trial.problem.source_has_start = true;
    refused(3, {"num_accepted[1] = 3", "0 to 2"});
    refused(-1, {"num_accepted[1] = -1", "0 to 2"});
  }
  SECTION("cache_seqlens") {
    for (bool const is_update : {false, true}) {
      auto trial = plain_trial(is_update);
      trial.problem.circular = true;
      auto const ring = uploaded({3}, {0, -4, 2});
      check_refused_call(trial, [&](auto& a) { a.cache_seqlens = ring.view(); },
                         {"cache_seqlens[1] = -4", "at least 0"});
    }
    auto trial = plain_trial(true);
    trial.problem.circular = trial.problem.has_num_accepted = true;
    auto const ring = uploaded({3}, {9, 1, 9});
    auto const accepted = uploaded({3}, {4, 2, 4});
    check_refused_call(trial,
                       [&](auto& a) {
                         a.cache_seqlens = ring.view();
                         a.num_accepted = accepted.view();
                       },
                       {"cache_seqlens[1] = 1", "at least 2", "num_accepted"});
  }
  SECTION("cu_seqlens and seq_idx") {
    for (bool const is_update : {false, true}) {
      auto trial = plain_trial(is_update);
      trial.problem.pack = packing::cu_seqlens;
      trial.problem.max_batch = 1;
      trial.lengths = {1, 2, 0};
      trial.problem.max_sequences = 3;
      auto const refused = [&](std::vector<double> const& ends, words const& expected) {
        auto const table = uploaded({4}, ends);
        check_refused_call(
            trial, [&](auto& a) { a.cu_seqlens = table.view(); }, expected);
      };
      refused({1, 1, 2, 3}, {"cu_seqlens[0] = 1", "must be 0"});
      refused({0, 2, 1, 3}, {"cu_seqlens[2] = 1", "not decrease"});
      refused({0, 2, 3, 5}, {"cu_seqlens[3] = 5", "beyond seqlen = 4"});
      auto dense = plain_trial(is_update);
      dense.problem.pack = packing::seq_idx;
      dense.lengths = {2};
      auto const ids = uploaded({3, 4}, {0, 0, 1, 1, 2, 1, 2, 2, 0, 0, 0, 0});
      check_refused_call(dense, [&](auto& a) { a.seq_idx = ids.view(); },
                         {"seq_idx[1, 1] = 1", "not decrease"});
    }
    auto trial = plain_trial(true);
    trial.problem.pack = packing::cu_seqlens;
    trial.problem.max_batch = 1;
    trial.problem.per_token_target = true;
    trial.problem.max_targets = 2;
    trial.lengths = {1, 2, 0};
    trial.problem.max_sequences = 3;
    auto const ends = uploaded({4}, {0, 0, 3, 3});
    check_refused_call(trial, [&](auto& a) { a.cu_seqlens = ends.view(); },
                       {"sequence 1", "3 tokens", "final_states has room for the states of 2"});
  }
}

TEST_CASE("conv1d: tensors must be on the plan's device", "[errors]") {
  auto const trial = plain_trial(false);
  device const elsewhere{is_host_backend() ? device_kind::cuda : device_kind::host, 0};
  check_refused_call(trial, [&](auto& a) { a.weight.where = elsewhere; },
                     {"weight is on device", "where the plan runs"});
}

}  // namespace
}  // namespace mambatile::testing
