#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/execute.hpp"
#include "support/refusals.hpp"
#include "support/update_check.hpp"

// Rules that a state_update can break: what is said, and that nothing was written.

namespace mambatile::testing {
namespace {

using words = std::vector<std::string>;

update_trial slots_trial() {
  update_trial trial;
  trial.problem = {.max_batch = 3,
                   .max_seqlen = 2,
                   .nheads = 4,
                   .headdim = 6,
                   .ngroups = 2,
                   .dstate = 5,
                   .D = skip::per_head,
                   .has_z = true,
                   .has_dt_bias = true,
                   .has_initial_states = true,
                   .has_final_states = true,
                   .has_state_source = true,
                   .has_state_target = true,
                   .per_token_source = true,
                   .per_token_target = true};
  trial.in_place = true;
  return trial;
}

// Runs the trial's call after `spoil` and checks that it is refused in these words, and that
// nothing changed.
template <class Exception = invalid_argument>
void check_refused_call(update_trial const& trial,
                        std::function<void(update_tensors&, state_update_arguments&)> const& spoil,
                        words const& expected) {
  update_tensors tensors(trial);
  auto arguments = tensors.arguments();
  spoil(tensors, arguments);
  tensors.upload();
  auto const message =
      message_of<Exception>([&] { execute(trial.planned_problem(), arguments, trial.threads); });
  check_message(message, "state_update", expected);
  tensors.download();
  CHECK(tensors.is_untouched());
}

void set_index(test_tensor const& tensor, std::int64_t row, std::int64_t column, double value) {
  auto const image = tensor.image();
  test_tensor::set(image, row * image.stride(0) + (image.rank > 1 ? column * image.stride(1) : 0),
                   value);
}

TEST_CASE("state_update: tensors that do not fit the problem are refused", "[errors]") {
  auto const trial = slots_trial();
  using arguments = state_update_arguments;
  for (auto const& [name, view] :
       std::vector<std::pair<char const*, const_tensor_view arguments::*>>{
           {"x", &arguments::x},
           {"dt", &arguments::dt},
           {"A", &arguments::A},
           {"B", &arguments::B},
           {"C", &arguments::C},
           {"D", &arguments::D},
           {"z", &arguments::z},
           {"dt_bias", &arguments::dt_bias},
           {"initial_states", &arguments::initial_states},
           {"state_source", &arguments::state_source},
           {"state_target", &arguments::state_target},
           {"num_accepted", &arguments::num_accepted}}) {
    INFO(name);
    auto const field = view;
    check_refused_call(trial, [&](auto&, arguments& a) { a.*field = {}; }, {name, "absent"});
    // A larger pool is none the worse.
    if (field != &arguments::initial_states) {
      check_refused_call(trial, [&](auto&, arguments& a) { ++(a.*field).extents[0]; },
                         {"has shape"});
    }
    check_refused_call(trial, [&](auto&, arguments& a) { ++(a.*field).rank; }, {name, "has shape"});
    check_refused_call(trial, [&](auto&, arguments& a) { (a.*field).data = nullptr; },
                       {name, "null"});
    check_refused_call(trial,
                       [&](auto&, arguments& a) {
                         (a.*field).type = (a.*field).type == dtype::i32 ? dtype::f32 : dtype::i32;
                       },
                       {name, "has type"});
  }
  check_refused_call(trial, [](auto&, arguments& a) { a.out = {}; }, {"out is absent"});
  check_refused_call(trial, [](auto&, arguments& a) { ++a.out.extents[1]; }, {"out has shape"});
  check_refused_call(trial, [](auto&, arguments& a) { a.final_states = {}; },
                     {"final_states is absent", "has_final_states"});
  check_refused_call(trial, [](auto&, arguments& a) { a.row_ids = a.num_accepted; },
                     {"row_ids was given", "has_row_ids"});
  check_refused_call<unsupported>(trial, [](auto&, arguments& a) { a.x.strides[3] = 2; },
                                  {"x has stride 2", "last axis"});
  check_refused_call(trial,
                     [](auto&, arguments& a) {
                       for (auto* view : {&a.state_source, &a.state_target, &a.num_accepted})
                         ++view->extents[0];
                     },
                     {"has shape"});
}

TEST_CASE("state_update: outputs that overlap are refused", "[errors]") {
  auto const trial = slots_trial();
  using arguments = state_update_arguments;
  check_refused_call(trial, [](auto&, arguments& a) { a.out.data = const_cast<void*>(a.x.data); },
                     {"out overlaps x"});
  check_refused_call(trial, [](auto&, arguments& a) { a.out.strides[0] = 0; },
                     {"out", "overlap each other"});
  check_refused_call(trial, [](auto&, arguments& a) { a.final_states.strides[1] = 0; },
                     {"final_states", "overlap each other"});
  check_refused_call(trial,
                     [](auto&, arguments& a) {
                       a.final_states.data =
                           static_cast<char*>(a.final_states.data) + sizeof(float);
                       --a.final_states.extents[0];
                     },
                     {"final_states overlaps initial_states", "identical"});
}

TEST_CASE("state_update: slots and counts out of range are refused", "[errors]") {
  if (!is_host_backend()) SKIP("index arrays on a device are checked by the device");
  auto const trial = slots_trial();
  using arguments = state_update_arguments;
  for (double const slot : {-2.0, 12.0, 1e6}) {
    check_refused_call(
        trial, [&](update_tensors& t, arguments&) { set_index(t.state_source, 1, 2, slot); },
        {"state_source[1, 2]", "12 slots"});
    check_refused_call(
        trial, [&](update_tensors& t, arguments&) { set_index(t.state_target, 0, 1, slot); },
        {"state_target[0, 1]", "12 slots"});
  }
  for (double const count : {-1.0, 4.0}) {
    check_refused_call(
        trial, [&](update_tensors& t, arguments&) { set_index(t.num_accepted, 2, 0, count); },
        {"num_accepted[2]", "1 to 3", "state_source has 3 states"});
  }
  check_refused_call(trial,
                     [&](update_tensors& t, arguments&) { set_index(t.num_accepted, 2, 0, 0); },
                     {"num_accepted[2] = 0", "state_source", "source_has_start"});
  auto with_start = trial;
  with_start.problem.source_has_start = true;
  for (double const count : {-1.0, 3.0}) {
    check_refused_call(
        with_start, [&](update_tensors& t, arguments&) { set_index(t.num_accepted, 2, 0, count); },
        {"num_accepted[2]", "0 to 2", "state_source has 3 states"});
  }
  auto rows = trial;
  rows.problem.has_state_source = rows.problem.has_state_target = false;
  rows.in_place = false;
  check_refused_call(rows,
                     [&](update_tensors& t, arguments&) { set_index(t.num_accepted, 2, 0, 4); },
                     {"num_accepted[2] = 4", "1 to 3", "initial_states"});
}

TEST_CASE("state_update: of a row of padding nothing is read, its count included", "[errors]") {
  auto trial = slots_trial();
  trial.problem.skip_padding = true;
  update_tensors const tensors(trial);
  for (std::int64_t column = 0; column < 3; ++column) {
    set_index(tensors.state_source, 1, column, -1);
    if (column < 2) set_index(tensors.state_target, 1, column, -1);
  }
  set_index(tensors.num_accepted, 1, 0, std::numeric_limits<std::int32_t>::max());
  tensors.upload();
  execute(trial.planned_problem(), tensors.arguments(), trial.threads);
  tensors.download();
  tensors.check_guards();
  auto const out = tensors.out.result();
  CHECK(test_tensor::get(out, out.stride(0)) == 0.0);
}

TEST_CASE("state_update: a slot written twice, or written and read, is refused", "[errors]") {
  if (!is_host_backend()) SKIP("index arrays on a device are checked by the device");
  auto const trial = slots_trial();
  using arguments = state_update_arguments;
  auto const target = [](update_tensors& t, std::int64_t row, std::int64_t column) {
    return values(t.state_target.image())[static_cast<std::size_t>(row * 2 + column)];
  };
  // By two rows, and by two tokens of one row.
  check_refused_call(
      trial,
      [&](update_tensors& t, arguments&) { set_index(t.state_target, 1, 0, target(t, 0, 1)); },
      {"state_target[0, 1]", "state_target[1, 0]", "at most once"});
  check_refused_call(
      trial,
      [&](update_tensors& t, arguments&) { set_index(t.state_target, 0, 1, target(t, 0, 0)); },
      {"state_target[0, 0]", "state_target[0, 1]", "at most once"});
  check_refused_call(trial,
                     [&](update_tensors& t, arguments&) {
                       set_index(t.num_accepted, 1, 0, 2);
                       set_index(t.state_source, 1, 1, target(t, 0, 0));
                     },
                     {"state_source of row 1", "state_target[0, 0]", "same call"});
  auto single = trial;
  single.problem.per_token_source = single.problem.per_token_target = false;
  check_refused_call(single,
                     [&](update_tensors& t, arguments&) {
                       set_index(t.state_target, 1, 0, values(t.state_target.image())[0]);
                     },
                     {"state_target[0]", "state_target[1]", "at most once"});
}

TEST_CASE("state_update: calls beyond the plan's capacity are refused", "[errors]") {
  auto const trial = slots_trial();
  update_tensors const tensors(trial);
  tensors.upload();
  auto smaller = trial.problem;
  smaller.max_batch = 2;
  check_message(message_of<invalid_argument>([&] { execute(smaller, tensors.arguments()); }),
                "state_update", {"batch = 3", "max_batch = 2"});
  smaller = trial.problem;
  smaller.max_seqlen = 1;
  check_message(message_of<invalid_argument>([&] { execute(smaller, tensors.arguments()); }),
                "state_update", {"seqlen = 2", "max_seqlen = 1"});
  tensors.download();
  CHECK(tensors.is_untouched());
}

TEST_CASE("state_update: problems that break a rule are refused", "[errors]") {
  auto const refused = [](std::function<void(state_update_problem&)> const& spoil,
                          words const& expected) {
    auto problem = slots_trial().problem;
    spoil(problem);
    check_refused(problem, expected);
  };
  using problem_type = state_update_problem;
  for (auto const field : {&problem_type::max_batch, &problem_type::max_seqlen,
                           &problem_type::nheads, &problem_type::headdim, &problem_type::dstate}) {
    refused([&](problem_type& p) { p.*field = -1; }, {"= -1", "negative"});
  }
  refused([](problem_type& p) { p.threads = -1; }, {"threads = -1"});
  refused([](problem_type& p) { p.ngroups = 3; }, {"nheads = 4", "ngroups = 3"});
  refused([](problem_type& p) { p.ngroups = 0; }, {"ngroups = 0"});
  refused([](problem_type& p) { p.io = dtype::i32; }, {"io = i32"});
  refused([](problem_type& p) { p.dt = dtype::i32; }, {"dt = i32"});
  refused([](problem_type& p) { p.state = dtype::i32; }, {"state = i32"});
  refused([](problem_type& p) { p.D_type = dtype::f16; }, {"D_type = f16"});
  refused([](problem_type& p) { p.dt_bias_type = dtype::bf16; }, {"dt_bias_type = bf16"});
  refused([](problem_type& p) { p.dt_limit = {0.2F, 0.1F}; }, {"dt_limit"});
  refused(
      [](problem_type& p) {
        p.dt_limit = {std::numeric_limits<float>::quiet_NaN(), 1.0F};
      },
      {"dt_limit"});
  refused([](problem_type& p) { p.has_initial_states = false; }, {"has_state_source"});
  refused([](problem_type& p) { p.has_final_states = false; }, {"has_state_target"});
  refused([](problem_type& p) { p.has_initial_states = p.has_state_source = false; },
          {"per_token_source"});
  refused(
      [](problem_type& p) {
        p.source_has_start = true;
        p.per_token_source = false;
      },
      {"source_has_start = true", "per_token_source"});
  refused([](problem_type& p) { p.has_final_states = p.has_state_target = false; },
          {"per_token_target"});
  refused(
      [](problem_type& p) {
        p.skip_padding = true;
        p.has_state_source = false;
      },
      {"skip_padding", "has_state_source"});
  refused(
      [](problem_type& p) {
        p.skip_padding = true;
        p.has_state_target = false;
      },
      {"skip_padding", "has_state_target"});
  refused([](problem_type& p) { p.state_rounding = rounding::stochastic; },
          {"state_rounding = stochastic", "state = f32"});
  refused([](problem_type& p) { p.has_row_ids = true; }, {"has_row_ids", "stochastic"});
}

}  // namespace
}  // namespace mambatile::testing
