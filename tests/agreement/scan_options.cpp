#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/pairwise.hpp"
#include "support/scan_check.hpp"
#include "support/tested_backend.hpp"

// Every option of chunk_scan against the f64 recurrence: each alone, then all in pairs.

namespace mambatile::testing {
namespace {

scan_trial plain_trial() {
  scan_trial trial;
  trial.problem = {.max_batch = 2,
                   .max_seqlen = 131,
                   .nheads = 6,
                   .headdim = 21,
                   .ngroups = 3,
                   .dstate = 19,
                   .has_final_states = true};
  return trial;
}

// Lengths of sequences that fill a row of this many tokens but for a few: empty ones, single
// tokens, and more than one chunk.
std::vector<std::int64_t> lengths_for(std::int64_t seqlen) {
  std::vector<std::int64_t> lengths = {0, 1};
  std::int64_t left = seqlen - 1 - seqlen / 10;
  for (std::int64_t const length : {17, 0, 64, 1, 33, 2, 70}) {
    if (length > left) continue;
    lengths.push_back(length);
    left -= length;
  }
  if (left > 0) lengths.push_back(left);
  lengths.push_back(0);
  return lengths;
}

void pack(scan_trial& trial, packing how) {
  auto& problem = trial.problem;
  problem.pack = how;
  if (how == packing::dense) return;
  trial.lengths = lengths_for(problem.max_seqlen);
  if (how == packing::cu_seqlens) {
    problem.max_batch = 1;
    problem.max_sequences = static_cast<std::int64_t>(trial.lengths.size());
  } else {
    std::erase(trial.lengths, 0);
  }
}

// GPUs take snapshots at multiples of 64 tokens only, and say so.
void adapt_to_backend(scan_trial& trial) {
  auto& every = trial.problem.intermediate_every;
  auto const answer = tested_backend().supports(trial.planned_problem(), tested_device());
  if (answer || every == 0 || every % 64 == 0) return;
  INFO(answer.reason);
  CHECK(answer.reason.find("intermediate_every") != std::string::npos);
  CHECK(answer.reason.find("64") != std::string::npos);
  CHECK_FALSE(is_host_backend());
  every = 64;
}

struct option {
  char const* name;
  std::function<void(scan_trial&)> set;
};

std::vector<option> const& single_options() {
  static std::vector<option> const options = {
      {"nothing", [](scan_trial&) {}},
      {"no final states", [](scan_trial& t) { t.problem.has_final_states = false; }},
      {"D per head", [](scan_trial& t) { t.problem.D = skip::per_head; }},
      {"D per channel", [](scan_trial& t) { t.problem.D = skip::per_channel; }},
      {"z", [](scan_trial& t) { t.problem.has_z = true; }},
      {"dt_bias", [](scan_trial& t) { t.problem.has_dt_bias = true; }},
      {"dt_softplus", [](scan_trial& t) { t.problem.dt_softplus = true; }},
      {"dt_limit",
       [](scan_trial& t) {
         t.problem.dt_limit = {0.004F, 0.03F};
       }},
      {"dt_limit of equal ends",
       [](scan_trial& t) {
         t.problem.dt_limit = {0.01F, 0.01F};
       }},
      {"dt_bias, softplus and limit",
       [](scan_trial& t) {
         t.problem.has_dt_bias = t.problem.dt_softplus = true;
         t.problem.dt_limit = {0.002F, 0.05F};
       }},
      {"initial states", [](scan_trial& t) { t.problem.has_initial_states = true; }},
      {"states in place", [](scan_trial& t) { t.problem.has_initial_states = t.in_place = true; }},
      {"state_source",
       [](scan_trial& t) {
         t.problem.max_batch = 4;
         t.problem.has_initial_states = t.problem.has_state_source = true;
       }},
      {"state_target",
       [](scan_trial& t) {
         t.problem.max_batch = 4;
         t.problem.has_state_target = true;
       }},
      {"slots in place",
       [](scan_trial& t) {
         t.problem.max_batch = 4;
         t.problem.has_initial_states = t.problem.has_state_source = true;
         t.problem.has_state_target = t.in_place = true;
       }},
      {"cu_seqlens", [](scan_trial& t) { pack(t, packing::cu_seqlens); }},
      {"cu_seqlens with initial states",
       [](scan_trial& t) {
         pack(t, packing::cu_seqlens);
         t.problem.has_initial_states = true;
       }},
      {"cu_seqlens without a sequence",
       [](scan_trial& t) {
         t.problem.max_batch = 1;
         t.problem.pack = packing::cu_seqlens;
       }},
      {"seq_idx", [](scan_trial& t) { pack(t, packing::seq_idx); }},
      {"seq_idx with initial states",
       [](scan_trial& t) {
         pack(t, packing::seq_idx);
         t.problem.has_initial_states = true;
       }},
      {"seq_idx with padding",
       [](scan_trial& t) {
         pack(t, packing::seq_idx);
         t.problem.has_initial_states = true;
         t.padding_every = 5;
       }},
      {"seq_idx of padding only",
       [](scan_trial& t) {
         pack(t, packing::seq_idx);
         t.problem.has_initial_states = t.problem.has_total_decay = true;
         t.padding_every = 1;
       }},
      {"total_decay", [](scan_trial& t) { t.problem.has_total_decay = true; }},
      {"total_decay with seq_idx",
       [](scan_trial& t) {
         pack(t, packing::seq_idx);
         t.problem.has_total_decay = true;
       }},
      {"snapshots after every token", [](scan_trial& t) { t.problem.intermediate_every = 1; }},
      {"snapshots after every 7th token", [](scan_trial& t) { t.problem.intermediate_every = 7; }},
      {"snapshots after every 64th token",
       [](scan_trial& t) { t.problem.intermediate_every = 64; }},
      {"snapshots of packed sequences",
       [](scan_trial& t) {
         t.problem.max_seqlen = 523;
         pack(t, packing::cu_seqlens);
         t.lengths = {3, 64, 200, 0, 127, 128};
         t.problem.max_sequences = 6;
         t.problem.intermediate_every = 64;
       }},
      {"tf32 allowed", [](scan_trial& t) { t.problem.math = products::tf32; }},
      {"batch_invariant", [](scan_trial& t) { t.problem.batch_invariant = true; }},
      {"spare capacity", [](scan_trial& t) { t.spare_capacity = 9; }},
      {"one thread", [](scan_trial& t) { t.problem.threads = 1; }},
      {"columns of one buffer",
       [](scan_trial& t) {
         t.problem.has_z = true;
         t.one_buffer = true;
       }},
      {"padded tensors",
       [](scan_trial& t) {
         t.problem.has_initial_states = true;
         t.inputs = t.outputs = t.states = arrangement::padded;
       }},
      {"swapped outer axes",
       [](scan_trial& t) {
         t.problem.has_initial_states = true;
         t.inputs = t.outputs = t.states = arrangement::swapped;
       }},
      {"negative strides", [](scan_trial& t) { t.inputs = arrangement::reversed; }},
      {"states with headdim innermost",
       [](scan_trial& t) {
         t.problem.has_initial_states = true;
         t.states = arrangement::transposed;
       }},
  };
  return options;
}

TEST_CASE("scan: each option agrees with the recurrence", "[agreement]") {
  for (auto const& each : single_options()) {
    DYNAMIC_SECTION(each.name) {
      auto trial = plain_trial();
      each.set(trial);
      adapt_to_backend(trial);
      check_scan(trial);
    }
  }
}

TEST_CASE("scan: each option agrees in every type", "[agreement]") {
  for (auto const io : {dtype::f32, dtype::bf16, dtype::f16}) {
    for (auto const& each : single_options()) {
      auto trial = plain_trial();
      // States in a type other than the io type.
      trial.problem.io = io;
      trial.problem.dt = io;
      trial.problem.state = io == dtype::f32 ? dtype::bf16 : dtype::f32;
      trial.problem.D_type = trial.problem.dt_bias_type = io;
      trial.problem.max_seqlen = 83;
      each.set(trial);
      adapt_to_backend(trial);
      check_scan(trial);
    }
  }
}

TEST_CASE("scan: stress distributions agree", "[agreement]") {
  for (auto const* regime : {"bigdecay", "strongA", "cliff", "smalldt", "dtzero", "hugedt"}) {
    for (auto const io : {dtype::f32, dtype::bf16, dtype::f16}) {
      // Steps of 1e3 leave f16's range.
      if (io == dtype::f16 && std::string(regime) == "hugedt") continue;
      for (bool const softplus : {false, true}) {
        auto trial = plain_trial();
        trial.regime = regime;
        trial.problem.max_seqlen = 300;
        trial.problem.io = io;
        trial.problem.dt_softplus = softplus;
        trial.problem.has_dt_bias = softplus;
        trial.problem.has_initial_states = true;
        check_scan(trial);
      }
    }
  }
}

struct shape {
  std::int64_t batch, seqlen, nheads, headdim, ngroups, dstate;
};

void set_shape(scan_trial& trial, shape const& from) {
  trial.problem.max_batch = from.batch;
  trial.problem.max_seqlen = from.seqlen;
  trial.problem.nheads = from.nheads;
  trial.problem.headdim = from.headdim;
  trial.problem.ngroups = from.ngroups;
  trial.problem.dstate = from.dstate;
}

TEST_CASE("scan: shapes agree", "[agreement]") {
  // Around the widths of vectors, tiles and chunks, and each of the models' heads.
  for (auto const& each :
       std::vector<shape>{{1, 1, 1, 1, 1, 1},      {1, 2, 1, 1, 1, 3},      {3, 5, 2, 3, 1, 2},
                          {1, 15, 1, 7, 1, 9},     {1, 16, 2, 8, 2, 8},     {2, 17, 4, 9, 2, 15},
                          {1, 31, 1, 16, 1, 16},   {1, 33, 3, 17, 3, 17},   {1, 63, 2, 31, 1, 33},
                          {1, 64, 1, 32, 1, 32},   {1, 65, 2, 33, 2, 31},   {1, 127, 1, 48, 1, 96},
                          {1, 129, 2, 64, 1, 128}, {1, 100, 2, 64, 1, 64},  {1, 70, 2, 80, 1, 128},
                          {1, 90, 1, 128, 1, 256}, {1, 40, 1, 64, 1, 512},  {1, 40, 1, 256, 1, 16},
                          {1, 513, 1, 5, 1, 4},    {5, 3, 24, 4, 1, 6},     {7, 1, 3, 64, 1, 16},
                          {1, 257, 8, 12, 8, 5},   {2, 48, 1, 100, 1, 100}, {1, 67, 1, 1, 1, 128},
                          {1, 67, 1, 128, 1, 1},   {1, 1000, 1, 24, 1, 24}}) {
    auto trial = plain_trial();
    set_shape(trial, each);
    trial.problem.has_initial_states = true;
    trial.problem.D = skip::per_head;
    check_scan(trial);
    trial.problem.io = dtype::bf16;
    check_scan(trial);
  }
}

TEST_CASE("scan: any size may be zero", "[agreement]") {
  for (auto const& each : std::vector<shape>{{0, 5, 2, 3, 1, 4},
                                             {2, 0, 2, 3, 1, 4},
                                             {2, 5, 0, 3, 1, 4},
                                             {2, 5, 2, 0, 1, 4},
                                             {2, 5, 2, 3, 1, 0},
                                             {0, 0, 0, 0, 1, 0}}) {
    for (bool const with_states : {false, true}) {
      auto trial = plain_trial();
      set_shape(trial, each);
      trial.problem.D = skip::per_channel;
      trial.problem.has_z = true;
      trial.problem.has_initial_states = with_states;
      trial.problem.has_total_decay = true;
      check_scan(trial);
      trial.problem.pack = packing::seq_idx;
      check_scan(trial);
      trial.problem.pack = packing::cu_seqlens;
      trial.problem.max_batch = 1;
      trial.problem.max_sequences = 2;
      trial.lengths = {0, 0};
      check_scan(trial);
    }
  }
}

scan_trial trial_of(std::vector<int> const& row) {
  std::size_t next = 0;
  auto const choice = [&] { return row[next++]; };
  auto const type = [&] { return static_cast<dtype>(choice()); };  // f32, bf16, f16

  scan_trial trial;
  auto& problem = trial.problem;
  static std::vector<shape> const shapes = {{1, 97, 3, 5, 1, 7},
                                            {2, 130, 4, 16, 2, 16},
                                            {1, 259, 6, 33, 3, 21},
                                            {3, 67, 2, 64, 1, 40},
                                            {1, 67, 1, 9, 1, 130}};
  set_shape(trial, shapes[static_cast<std::size_t>(choice())]);
  problem.io = type();
  problem.dt = type();
  problem.state = type();
  problem.D = static_cast<skip>(choice());
  problem.D_type = choice() != 0 ? problem.io : dtype::f32;
  problem.has_z = choice() != 0;
  problem.has_dt_bias = choice() != 0;
  problem.dt_bias_type = choice() != 0 ? problem.io : dtype::f32;
  problem.dt_softplus = choice() != 0;
  problem.dt_limit = choice() != 0 ? std::array{0.004F, 0.05F}
                                   : std::array{0.0F, std::numeric_limits<float>::infinity()};
  problem.has_initial_states = choice() != 0;
  problem.has_final_states = choice() != 0;
  problem.has_state_source = choice() != 0;
  problem.has_state_target = choice() != 0;
  trial.in_place = choice() != 0;
  problem.has_total_decay = choice() != 0;
  problem.intermediate_every = std::array{0, 7, 64}[static_cast<std::size_t>(choice())];
  pack(trial, static_cast<packing>(choice()));
  trial.padding_every = problem.pack == packing::seq_idx && choice() != 0 ? 6 : 0;
  trial.inputs = static_cast<arrangement>(choice());
  trial.one_buffer = choice() != 0;
  trial.outputs = static_cast<arrangement>(choice());
  trial.states = std::array{arrangement::packed, arrangement::padded, arrangement::transposed,
                            arrangement::swapped}[static_cast<std::size_t>(choice())];
  problem.chunk_size = std::array{0, 16, 50, 128}[static_cast<std::size_t>(choice())];
  trial.spare_capacity = choice() != 0 ? 3 : 0;
  problem.batch_invariant = choice() != 0;
  trial.threads = choice();

  // What the rules demand of combinations.
  if (trial.in_place) {
    problem.has_initial_states = problem.has_final_states = true;
    problem.has_state_target = problem.has_state_source;
  }
  if (problem.has_state_source) problem.has_initial_states = true;
  if (problem.has_state_target) problem.has_final_states = true;
  return trial;
}

TEST_CASE("scan: options agree in pairs", "[agreement]") {
  // In trial_of's order.
  std::vector<int> const levels = {5, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2,
                                   2, 2, 2, 3, 3, 2, 4, 2, 3, 4, 4, 2, 2, 2};
  auto const rows = pairwise_rows(levels);
  std::uint64_t seed = 100;
  for (auto const& row : rows) {
    auto trial = trial_of(row);
    trial.seed = ++seed;
    adapt_to_backend(trial);
    check_scan(trial);
  }
}

TEST_CASE("scan: the given trial", "[.repro]") {
  char const* const text = std::getenv("MAMBATILE_TRIAL");
  if (text == nullptr) SKIP("MAMBATILE_TRIAL names no trial");
  check_scan(parse_trial(text));
}

}  // namespace
}  // namespace mambatile::testing
