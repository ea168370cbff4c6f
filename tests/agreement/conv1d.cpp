#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/conv1d_trial.hpp"
#include "support/pairwise.hpp"

// Every option of causal_conv1d and causal_conv1d_update against the definition in f64: each alone,
// then all in pairs.

namespace mambatile::testing {
namespace {

conv1d_trial plain_trial() {
  conv1d_trial trial;
  trial.problem = {
      .max_batch = 3, .max_seqlen = 37, .channels = 53, .act = activation::silu, .has_bias = true};
  return trial;
}

void give_states(conv1d_trial& trial, std::int64_t spare_columns = 0) {
  auto& problem = trial.problem;
  problem.state_len = std::max<std::int64_t>(problem.width - 1 + spare_columns, 0);
  problem.has_initial_states = problem.has_final_states = true;
}

void pack_cu_seqlens(conv1d_trial& trial) {
  trial.problem.pack = packing::cu_seqlens;
  trial.problem.max_batch = 1;
  trial.lengths = {0, 1, 5, 2, 0, 17, 3, 1};
  trial.problem.max_sequences = static_cast<std::int64_t>(trial.lengths.size());
}

void pack_seq_idx(conv1d_trial& trial, std::int64_t padding_every) {
  trial.problem.pack = packing::seq_idx;
  trial.lengths = {4, 1, 2, 13, 3};
  trial.padding_every = padding_every;
}

struct option {
  char const* name;
  std::function<void(conv1d_trial&)> set;
};

std::vector<option> const& shared_options() {
  static std::vector<option> const options = {
      {"nothing", [](conv1d_trial&) {}},
      {"no bias", [](conv1d_trial& t) { t.problem.has_bias = false; }},
      {"no activation", [](conv1d_trial& t) { t.problem.act = activation::none; }},
      {"states", [](conv1d_trial& t) { give_states(t); }},
      {"states in place",
       [](conv1d_trial& t) {
         give_states(t);
         t.in_place = true;
       }},
      {"wide states in place",
       [](conv1d_trial& t) {
         give_states(t, 3);
         t.in_place = true;
       }},
      {"states longer than the call",
       [](conv1d_trial& t) {
         give_states(t, 40);
         t.in_place = true;
       }},
      {"states with channels innermost",
       [](conv1d_trial& t) {
         give_states(t);
         t.states = arrangement::transposed;
       }},
      {"padded states",
       [](conv1d_trial& t) {
         give_states(t, 1);
         t.states = arrangement::padded;
       }},
      {"initial states alone",
       [](conv1d_trial& t) {
         give_states(t);
         t.problem.has_final_states = false;
       }},
      {"final states alone",
       [](conv1d_trial& t) {
         give_states(t, 2);
         t.problem.has_initial_states = false;
       }},
      {"slots",
       [](conv1d_trial& t) {
         t.problem.max_batch = 9;
         give_states(t);
         t.problem.has_state_source = t.problem.has_state_target = true;
       }},
      {"slots in place",
       [](conv1d_trial& t) {
         t.problem.max_batch = 9;
         give_states(t, 1);
         t.problem.has_state_source = t.problem.has_state_target = t.in_place = true;
       }},
      {"cu_seqlens",
       [](conv1d_trial& t) {
         pack_cu_seqlens(t);
         give_states(t);
         t.in_place = true;
       }},
      {"cu_seqlens with slots",
       [](conv1d_trial& t) {
         pack_cu_seqlens(t);
         give_states(t, 2);
         t.problem.has_state_source = t.problem.has_state_target = true;
       }},
      {"seq_idx", [](conv1d_trial& t) { pack_seq_idx(t, 0); }},
      {"seq_idx with padding and states",
       [](conv1d_trial& t) {
         pack_seq_idx(t, 4);
         give_states(t, 1);
         t.in_place = true;
       }},
      {"seq_idx of padding only",
       [](conv1d_trial& t) {
         pack_seq_idx(t, 1);
         give_states(t);
       }},
      {"rings",
       [](conv1d_trial& t) {
         give_states(t, 4);
         t.problem.circular = t.in_place = true;
       }},
      {"rings longer than the call",
       [](conv1d_trial& t) {
         give_states(t, 50);
         t.problem.circular = true;
       }},
      {"rings with seq_idx and padding",
       [](conv1d_trial& t) {
         pack_seq_idx(t, 5);
         give_states(t, 2);
         t.problem.circular = true;
       }},
      {"rings with cu_seqlens",
       [](conv1d_trial& t) {
         pack_cu_seqlens(t);
         give_states(t, 2);
         t.problem.circular = t.in_place = true;
       }},
      {"tokens innermost",
       [](conv1d_trial& t) {
         t.layout = conv1d_layout::tokens;
         give_states(t);
       }},
      {"tokens innermost, packed",
       [](conv1d_trial& t) {
         t.layout = conv1d_layout::tokens;
         pack_cu_seqlens(t);
         give_states(t);
       }},
      {"columns of a wider buffer",
       [](conv1d_trial& t) {
         t.layout = conv1d_layout::slice;
         give_states(t);
       }},
      {"no axis dense",
       [](conv1d_trial& t) {
         t.layout = conv1d_layout::scattered;
         give_states(t);
       }},
      {"no axis dense, seq_idx",
       [](conv1d_trial& t) {
         t.layout = conv1d_layout::scattered;
         pack_seq_idx(t, 6);
         give_states(t);
       }},
      {"one channel", [](conv1d_trial& t) { t.problem.channels = 1; }},
      {"one token",
       [](conv1d_trial& t) {
         t.problem.max_seqlen = 1;
         give_states(t);
       }},
      {"many channels",
       [](conv1d_trial& t) {
         t.problem.channels = 531;
         give_states(t);
       }},
      {"long", [](conv1d_trial& t) { t.problem.max_seqlen = 401; }},
      {"empty",
       [](conv1d_trial& t) {
         t.problem.max_seqlen = 0;
         give_states(t);
       }},
      {"no rows", [](conv1d_trial& t) { t.problem.max_batch = 0; }},
      {"spare capacity", [](conv1d_trial& t) { t.spare_capacity = 5; }},
      {"one thread", [](conv1d_trial& t) { t.problem.threads = 1; }},
  };
  return options;
}

void per_token(conv1d_trial& trial, std::int64_t stored) {
  auto& problem = trial.problem;
  problem.has_num_accepted = problem.per_token_source = problem.per_token_target = true;
  trial.stored = stored;
  problem.max_targets = problem.max_seqlen;
  if (problem.pack == packing::cu_seqlens) {
    problem.max_targets = *std::max_element(trial.lengths.begin(), trial.lengths.end()) + 1;
  }
}

std::vector<option> const& update_options() {
  static std::vector<option> const options = {
      {"rejected tokens in a wide state",
       [](conv1d_trial& t) {
         give_states(t, t.problem.max_seqlen);
         t.problem.has_num_accepted = t.in_place = true;
       }},
      {"rejected tokens of a longer call",
       [](conv1d_trial& t) {
         give_states(t, 5);
         t.problem.has_num_accepted = t.problem.has_num_previous = true;
       }},
      {"rejected tokens in a ring",
       [](conv1d_trial& t) {
         give_states(t, t.problem.max_seqlen);
         t.problem.has_num_accepted = t.problem.circular = t.in_place = true;
       }},
      {"states per token",
       [](conv1d_trial& t) {
         give_states(t);
         per_token(t, 3);
       }},
      {"states per token, in place",
       [](conv1d_trial& t) {
         give_states(t, 1);
         per_token(t, t.problem.max_seqlen);
         t.in_place = true;
       }},
      {"states per token in slots",
       [](conv1d_trial& t) {
         t.problem.max_batch = 9;
         give_states(t, 2);
         per_token(t, 4);
         t.problem.has_state_source = t.problem.has_state_target = t.in_place = true;
       }},
      {"states per token in slots, padding rows",
       [](conv1d_trial& t) {
         t.problem.max_batch = 9;
         give_states(t);
         per_token(t, 4);
         t.problem.has_state_source = t.problem.has_state_target = true;
         t.problem.skip_padding = true;
       }},
      {"states per token, the start in front",
       [](conv1d_trial& t) {
         give_states(t);
         per_token(t, 4);
         t.problem.source_has_start = true;
       }},
      {"states per token in slots, the start in front",
       [](conv1d_trial& t) {
         t.problem.max_batch = 9;
         give_states(t, 1);
         per_token(t, 5);
         t.problem.has_state_source = t.problem.has_state_target = t.in_place = true;
         t.problem.source_has_start = true;
       }},
      {"states per token, rings, the start in front",
       [](conv1d_trial& t) {
         give_states(t, 5);
         per_token(t, 3);
         t.problem.circular = t.problem.has_num_previous = t.problem.source_has_start = true;
       }},
      {"states per token, packed",
       [](conv1d_trial& t) {
         pack_cu_seqlens(t);
         give_states(t);
         per_token(t, 3);
       }},
      {"states per token, seq_idx",
       [](conv1d_trial& t) {
         pack_seq_idx(t, 3);
         give_states(t, 1);
         per_token(t, 2);
       }},
      {"states per token, rings",
       [](conv1d_trial& t) {
         give_states(t, 2);
         per_token(t, 3);
         t.problem.circular = t.problem.has_num_previous = true;
       }},
      {"padding rows",
       [](conv1d_trial& t) {
         t.problem.max_batch = 9;
         give_states(t);
         t.problem.has_state_source = t.problem.has_state_target = t.in_place = true;
         t.problem.skip_padding = true;
       }},
      {"padding rows, read only",
       [](conv1d_trial& t) {
         t.problem.max_batch = 9;
         give_states(t);
         t.problem.has_final_states = false;
         t.problem.has_state_source = t.problem.skip_padding = true;
       }},
      {"no token axis",
       [](conv1d_trial& t) {
         t.problem.max_seqlen = 1;
         t.token_axis = false;
         give_states(t);
       }},
  };
  return options;
}

TEST_CASE("conv1d: each option agrees with the definition", "[agreement]") {
  for (auto const& each : shared_options()) {
    DYNAMIC_SECTION(each.name) {
      for (std::int64_t const width : {4, 1, 2, 3, 7}) {
        for (bool const is_update : {false, true}) {
          auto trial = plain_trial();
          trial.problem.width = width;
          trial.is_update = is_update;
          each.set(trial);
          if (trial.problem.circular && trial.problem.state_len == 0) continue;
          check_conv1d(trial);
        }
      }
    }
  }
}

TEST_CASE("conv1d_update: each option agrees with the definition", "[agreement]") {
  for (auto const& each : update_options()) {
    DYNAMIC_SECTION(each.name) {
      for (std::int64_t const width : {4, 1, 2, 5}) {
        for (std::int64_t const tokens : {4, 1, 21}) {
          auto trial = plain_trial();
          trial.is_update = true;
          trial.problem.width = width;
          trial.problem.max_seqlen = tokens;
          each.set(trial);
          if (trial.problem.pack == packing::cu_seqlens) trial.problem.max_seqlen = 33;
          check_conv1d(trial);
        }
      }
    }
  }
}

TEST_CASE("conv1d: each option agrees in every type", "[agreement]") {
  for (auto const io : {dtype::bf16, dtype::f16}) {
    for (bool const wide_parameters : {false, true}) {
      auto const other = wide_parameters ? dtype::f32 : io;
      for (bool const is_update : {false, true}) {
        for (auto const& each : is_update ? update_options() : shared_options()) {
          INFO(each.name);
          auto trial = plain_trial();
          trial.is_update = is_update;
          if (is_update) trial.problem.max_seqlen = 5;
          trial.problem.io = io;
          trial.problem.weight = trial.problem.bias = trial.problem.state = other;
          each.set(trial);
          if (trial.problem.pack == packing::cu_seqlens) trial.problem.max_seqlen = 33;
          check_conv1d(trial);
        }
      }
    }
  }
}

TEST_CASE("conv1d: options agree in pairs", "[agreement]") {
  std::vector<int> const levels = {3, 4, 2, 2, 3, 5, 2, 4, 2, 2, 4};
  std::uint64_t seed = 100;
  for (auto const& row : pairwise_rows(levels)) {
    auto trial = plain_trial();
    auto& problem = trial.problem;
    trial.seed = ++seed;
    trial.is_update = true;
    problem.io = std::vector{dtype::f32, dtype::bf16, dtype::f16}[std::size_t(row[0])];
    problem.weight = problem.bias = problem.io;
    problem.width = std::vector{4, 1, 3, 6}[std::size_t(row[1])];
    problem.has_bias = row[2] != 0;
    problem.act = row[3] != 0 ? activation::silu : activation::none;
    problem.max_seqlen = std::vector{6, 1, 33}[std::size_t(row[4])];
    if (row[5] == 1) pack_cu_seqlens(trial);
    if (row[5] >= 2) pack_seq_idx(trial, row[5] == 2 ? 0 : row[5]);
    if (problem.pack == packing::cu_seqlens) problem.max_seqlen = 31;
    give_states(trial, problem.max_seqlen + 2);
    problem.circular = row[6] != 0;
    trial.layout = static_cast<conv1d_layout>(row[7]);
    problem.has_state_source = problem.has_state_target = problem.skip_padding = row[8] != 0;
    if (problem.has_state_source && problem.pack != packing::cu_seqlens) problem.max_batch = 6;
    trial.in_place = row[9] != 0;
    if (row[10] == 1) problem.has_num_accepted = true;
    if (row[10] >= 2) {
      problem.source_has_start = row[10] == 3;
      problem.has_num_previous = problem.circular;
      per_token(trial, 3);
      if (trial.in_place && !problem.has_state_target) trial.stored = problem.max_targets;
    }
    check_conv1d(trial);
  }
}

}  // namespace
}  // namespace mambatile::testing
