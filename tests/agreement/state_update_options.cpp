#include <cstdint>
#include <functional>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/pairwise.hpp"
#include "support/update_check.hpp"

// Every option of state_update against the f64 recurrence: each alone, then all in pairs.

namespace mambatile::testing {
namespace {

update_trial plain_trial() {
  update_trial trial;
  trial.problem = {.max_batch = 4,
                   .max_seqlen = 1,
                   .nheads = 6,
                   .headdim = 21,
                   .ngroups = 3,
                   .dstate = 19,
                   .has_initial_states = true,
                   .has_final_states = true};
  return trial;
}

enum class end { none, rows, slots, rows_per_token, slots_per_token };

void set_source(update_trial& trial, end how) {
  auto& problem = trial.problem;
  problem.has_initial_states = how != end::none;
  problem.has_state_source = how == end::slots || how == end::slots_per_token;
  problem.per_token_source = how == end::rows_per_token || how == end::slots_per_token;
}
void set_target(update_trial& trial, end how) {
  auto& problem = trial.problem;
  problem.has_final_states = how != end::none;
  problem.has_state_target = how == end::slots || how == end::slots_per_token;
  problem.per_token_target = how == end::rows_per_token || how == end::slots_per_token;
}
void set_ends(update_trial& trial, end source, end target) {
  set_source(trial, source);
  set_target(trial, target);
}

struct option {
  char const* name;
  std::function<void(update_trial&)> set;
};

std::vector<option> const& single_options() {
  using problem_type = state_update_problem;
  auto const size = [](char const* name, std::int64_t problem_type::*field, std::int64_t value) {
    return option{name, [=](update_trial& t) { t.problem.*field = value; }};
  };
  static std::vector<option> const options = {
      {"nothing", [](update_trial&) {}},
      {"no token axis", [](update_trial& t) { t.token_axis = false; }},
      size("two tokens", &problem_type::max_seqlen, 2),
      size("nine tokens", &problem_type::max_seqlen, 9),
      size("no tokens", &problem_type::max_seqlen, 0),
      size("no rows", &problem_type::max_batch, 0),
      size("no channels", &problem_type::headdim, 0),
      size("no state elements", &problem_type::dstate, 0),
      size("no heads", &problem_type::nheads, 0),
      {"in place", [](update_trial& t) { t.in_place = true; }},
      {"in place, tokens",
       [](update_trial& t) {
         t.in_place = true;
         t.problem.max_seqlen = 4;
       }},
      {"read only", [](update_trial& t) { set_target(t, end::none); }},
      {"read only, tokens",
       [](update_trial& t) {
         set_target(t, end::none);
         t.problem.max_seqlen = 3;
       }},
      {"from zero", [](update_trial& t) { set_source(t, end::none); }},
      {"from zero, read only", [](update_trial& t) { set_ends(t, end::none, end::none); }},
      {"slot to slot", [](update_trial& t) { set_ends(t, end::slots, end::slots); }},
      {"slots in place",
       [](update_trial& t) {
         set_ends(t, end::slots, end::slots);
         t.in_place = true;
       }},
      {"slots with padding",
       [](update_trial& t) {
         set_ends(t, end::slots, end::slots);
         t.problem.skip_padding = true;
       }},
      {"slots, read only, with padding",
       [](update_trial& t) {
         set_ends(t, end::slots, end::none);
         t.problem.skip_padding = true;
       }},
      {"speculation in slots",
       [](update_trial& t) {
         set_ends(t, end::slots_per_token, end::slots_per_token);
         t.problem.max_seqlen = 3;
         t.in_place = true;
       }},
      {"speculation in slots with padding",
       [](update_trial& t) {
         set_ends(t, end::slots_per_token, end::slots_per_token);
         t.problem.max_seqlen = 5;
         t.problem.skip_padding = true;
       }},
      {"speculation in rows",
       [](update_trial& t) {
         set_ends(t, end::rows_per_token, end::rows_per_token);
         t.problem.max_seqlen = 3;
         t.in_place = true;
       }},
      {"speculation in slots, the start in front",
       [](update_trial& t) {
         set_ends(t, end::slots_per_token, end::slots_per_token);
         t.problem.max_seqlen = 3;
         t.problem.source_has_start = t.in_place = true;
       }},
      {"speculation in rows, the start in front",
       [](update_trial& t) {
         set_ends(t, end::rows_per_token, end::rows_per_token);
         t.problem.max_seqlen = 2;
         t.problem.source_has_start = true;
       }},
      {"D per head", [](update_trial& t) { t.problem.D = skip::per_head; }},
      {"D per channel", [](update_trial& t) { t.problem.D = skip::per_channel; }},
      {"z", [](update_trial& t) { t.problem.has_z = true; }},
      {"bias, softplus and limit",
       [](update_trial& t) {
         t.problem.has_dt_bias = t.problem.dt_softplus = true;
         t.problem.dt_limit = {0.002F, 0.05F};
       }},
      {"bf16 states", [](update_trial& t) { t.problem.state = dtype::bf16; }},
      {"f16 states", [](update_trial& t) { t.problem.state = dtype::f16; }},
      {"one large head",
       [](update_trial& t) {
         t.problem.max_batch = t.problem.nheads = t.problem.ngroups = 1;
         t.problem.headdim = 200;
         t.problem.dstate = 128;
       }},
      {"rows of two hundred elements",
       [](update_trial& t) {
         t.problem.dstate = 200;
         t.problem.max_seqlen = 2;
       }},
      size("rows of 260 elements", &problem_type::dstate, 260),
      size("rows of 512 elements", &problem_type::dstate, 512),
      {"rows of 700 elements",
       [](update_trial& t) {
         t.problem.dstate = 700;
         t.problem.max_seqlen = 2;
       }},
      {"states beyond the nearest caches",
       [](update_trial& t) {
         t.problem.nheads = t.problem.ngroups = 16;
         t.problem.headdim = 64;
         t.problem.dstate = 128;
       }},
      {"spare capacity", [](update_trial& t) { t.spare_capacity = 3; }},
  };
  return options;
}

constexpr arrangement state_orders[] = {arrangement::packed, arrangement::transposed,
                                        arrangement::padded, arrangement::swapped};

TEST_CASE("state_update: each option alone agrees with the recurrence", "[agreement]") {
  for (auto const& option : single_options()) {
    for (auto const order : state_orders) {
      auto trial = plain_trial();
      option.set(trial);
      trial.states = order;
      INFO(option.name);
      check_update(trial);
    }
  }
}

TEST_CASE("state_update: options in pairs agree with the recurrence", "[agreement]") {
  constexpr dtype types[] = {dtype::f32, dtype::bf16, dtype::f16};
  constexpr arrangement input_orders[] = {arrangement::packed, arrangement::padded,
                                          arrangement::swapped};
  constexpr std::int64_t channels[] = {3, 5, 16, 33, 64, 100};
  constexpr std::int64_t elements[] = {1, 7, 16, 40, 128};
  constexpr std::int64_t tokens[] = {1, 1, 2, 5};
  enum factor {
    D,
    z,
    bias,
    softplus,
    limit,
    io,
    dt,
    state,
    seqlen,
    source,
    target,
    start,
    in_place,
    inputs,
    states,
    padding,
    stochastic,
    headdim,
    dstate,
    groups,
    threads,
    factors
  };
  std::vector<int> levels(factors, 2);
  levels[D] = levels[io] = levels[dt] = levels[state] = levels[inputs] = 3;
  levels[seqlen] = levels[states] = 4;
  levels[source] = levels[target] = levels[dstate] = 5;
  levels[headdim] = 6;
  std::uint64_t seed = 0;
  for (auto const& row : pairwise_rows(levels)) {
    auto trial = plain_trial();
    auto& problem = trial.problem;
    trial.seed = ++seed;
    problem.D = static_cast<skip>(row[D]);
    problem.has_z = row[z] != 0;
    problem.has_dt_bias = row[bias] != 0;
    problem.dt_softplus = row[softplus] != 0;
    if (row[limit] != 0) problem.dt_limit = {0.003F, 0.04F};
    problem.io = types[row[io]];
    problem.dt = types[row[dt]];
    problem.state = types[row[state]];
    problem.D_type = seed % 2 == 0 ? problem.io : dtype::f32;
    problem.dt_bias_type = seed % 3 == 0 ? problem.io : dtype::f32;
    trial.token_axis = row[seqlen] != 0;
    problem.max_seqlen = tokens[row[seqlen]];
    trial.stored = 4;
    set_ends(trial, static_cast<end>(row[source]), static_cast<end>(row[target]));
    problem.source_has_start = row[start] != 0 && problem.per_token_source;
    // In place both ends are the same tensor.
    trial.in_place = row[in_place] != 0 && problem.has_initial_states && problem.has_final_states &&
                     problem.has_state_source == problem.has_state_target;
    if (trial.in_place && !problem.has_state_source) {
      problem.per_token_target = problem.per_token_source;
      trial.stored = problem.max_seqlen;
    }
    trial.inputs = input_orders[row[inputs]];
    trial.states = state_orders[row[states]];
    problem.skip_padding = row[padding] != 0 && problem.has_state_source &&
                           problem.has_state_target == problem.has_final_states;
    if (row[stochastic] != 0 && problem.state != dtype::f32 && problem.has_final_states) {
      problem.state_rounding = rounding::stochastic;
      problem.has_row_ids = seed % 2 == 0;
    }
    problem.headdim = channels[row[headdim]];
    problem.dstate = elements[row[dstate]];
    problem.ngroups = row[groups] == 0 ? 1 : 3;
    trial.threads = row[threads];
    check_update(trial);
  }
}

}  // namespace
}  // namespace mambatile::testing
