#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/execute.hpp"
#include "support/refusals.hpp"
#include "support/scan_check.hpp"
#include "support/tested_backend.hpp"

// Index arrays with wrong entries. On the host they are refused before anything is written; on a
// device the plan's status names them after the call, and no byte outside the outputs has changed.

namespace mambatile::testing {
namespace {

using words = std::vector<std::string>;

void check_refused_indices(scan_trial const& trial, std::function<void(scan_tensors&)> const& spoil,
                           words const& expected) {
  scan_tensors tensors(trial);
  spoil(tensors);
  tensors.upload();
  if (is_host_backend()) {
    auto const message = message_of<invalid_argument>(
        [&] { execute(trial.planned_problem(), tensors.arguments()); });
    check_message(message, "chunk_scan", expected);
    tensors.download();
    CHECK(tensors.outputs_are_untouched());
    return;
  }
  auto const plan = tested_backend().plan(trial.planned_problem(), tested_device());
  guarded_memory workspace(plan.workspace_bytes());
  workspace.allow_all();
  workspace.upload();
  workspace_view const scratch{workspace.data(), workspace.bytes(), plan.where()};
  queue const on{.where = plan.where()};
  auto const message =
      message_of<invalid_argument>([&] { plan.check_indices(tensors.arguments(), on); });
  check_message(message, "chunk_scan", expected);
  plan.execute(tensors.arguments(), scratch, on);
  auto const status = plan.status(scratch, on);
  CHECK_FALSE(status.ok);
  INFO("status: " << status.message);
  auto const& tensor_name = expected.front();
  CHECK(status.message.find(tensor_name.substr(0, tensor_name.find('['))) != std::string::npos);
  tensors.download();
  tensors.check_guards();
}

void set_entry(test_tensor& tensor, std::int64_t position, std::int32_t value) {
  auto const image = tensor.image();
  static_cast<std::int32_t*>(image.data)[position] = value;
}

scan_trial small_trial() {
  scan_trial trial;
  trial.problem = {.max_batch = 4,
                   .max_seqlen = 40,
                   .nheads = 2,
                   .headdim = 5,
                   .ngroups = 1,
                   .dstate = 6,
                   .has_initial_states = true,
                   .has_final_states = true};
  return trial;
}

TEST_CASE("scan indices: cu_seqlens", "[errors]") {
  auto trial = small_trial();
  trial.problem.max_batch = 1;
  trial.problem.pack = packing::cu_seqlens;
  trial.problem.max_sequences = 3;
  trial.lengths = {10, 12, 14};
  check_refused_indices(trial, [](auto& t) { set_entry(t.cu_seqlens, 0, 1); },
                        {"cu_seqlens[0] = 1", "must be 0"});
  check_refused_indices(trial, [](auto& t) { set_entry(t.cu_seqlens, 0, -1); },
                        {"cu_seqlens[0] = -1", "must be 0"});
  check_refused_indices(trial, [](auto& t) { set_entry(t.cu_seqlens, 2, 9); },
                        {"cu_seqlens[2] = 9", "less than cu_seqlens[1] = 10", "must not decrease"});
  check_refused_indices(trial, [](auto& t) { set_entry(t.cu_seqlens, 1, -5); },
                        {"cu_seqlens[1] = -5", "less than cu_seqlens[0] = 0", "must not decrease"});
  check_refused_indices(trial, [](auto& t) { set_entry(t.cu_seqlens, 3, 41); },
                        {"cu_seqlens[3] = 41", "beyond seqlen = 40"});
}

TEST_CASE("scan indices: cu_seqlens needs one row and an entry", "[errors]") {
  auto trial = small_trial();
  trial.problem.max_batch = 1;
  trial.problem.pack = packing::cu_seqlens;
  trial.problem.max_sequences = 2;
  trial.problem.has_initial_states = false;
  trial.lengths = {10, 12};
  scan_tensors const tensors(trial);
  tensors.upload();
  auto arguments = tensors.arguments();
  arguments.cu_seqlens.extents[0] = 0;
  auto message = message_of<invalid_argument>([&] { execute(trial.problem, arguments); });
  check_message(message, "chunk_scan", {"cu_seqlens has shape (0)", "at least one entry"});
  arguments = tensors.arguments();
  for (auto* view : {&arguments.x, &arguments.dt, &arguments.B, &arguments.C}) {
    view->extents[0] = 0;
  }
  arguments.out.extents[0] = 0;
  message = message_of<invalid_argument>([&] { execute(trial.problem, arguments); });
  check_message(message, "chunk_scan", {"batch = 0", "batch = 1", "cu_seqlens"});
  tensors.download();
  CHECK(tensors.outputs_are_untouched());
}

TEST_CASE("scan indices: seq_idx", "[errors]") {
  auto trial = small_trial();
  trial.problem.pack = packing::seq_idx;
  trial.lengths = {15, 11, 14};
  trial.padding_every = 7;
  check_refused_indices(trial, [](auto& t) { set_entry(t.seq_idx, 40 + 17, -2); },
                        {"seq_idx[1, 17] = -2", ">= 0, or -1"});
  check_refused_indices(trial, [](auto& t) { set_entry(t.seq_idx, 3 * 40 + 39, 0); },
                        {"seq_idx[3, 39] = 0", "less than", "must not decrease"});
}

TEST_CASE("scan indices: slots", "[errors]") {
  auto trial = small_trial();
  trial.problem.has_state_source = trial.problem.has_state_target = true;
  // 4 rows, 7 slots.
  for (std::int32_t const slot : {-2, 7, 1 << 30}) {
    auto const shown = std::to_string(slot);
    check_refused_indices(trial, [&](auto& t) { set_entry(t.state_source, 2, slot); },
                          {"state_source[2] = " + shown, "out of range", "7 slots"});
    check_refused_indices(trial, [&](auto& t) { set_entry(t.state_target, 3, slot); },
                          {"state_target[3] = " + shown, "out of range", "7 slots"});
  }
}

TEST_CASE("scan indices: a slot is written once, and not while another row reads it", "[errors]") {
  if (!is_host_backend()) SKIP("rows that meet in a slot are not looked for on a device");
  auto trial = small_trial();
  trial.problem.has_state_source = trial.problem.has_state_target = true;
  check_refused_indices(trial,
                        [](auto& t) {
                          set_entry(t.state_target, 0, 5);
                          set_entry(t.state_target, 3, 5);
                        },
                        {"state_target[0]", "state_target[3]", "slot 5", "at most once"});
  trial.in_place = true;
  check_refused_indices(trial,
                        [](auto& t) {
                          for (std::int32_t row = 0; row < 4; ++row) {
                            set_entry(t.state_source, row, row);
                            set_entry(t.state_target, row, row);
                          }
                          set_entry(t.state_source, 1, 2);
                        },
                        {"state_source", "slot 2", "state_target[2] writes"});
}

TEST_CASE("scan indices: updating in place, rows without a slot array keep to their own",
          "[errors]") {
  if (!is_host_backend()) SKIP("rows that meet in a slot are not looked for on a device");
  for (bool const reads : {true, false}) {
    auto trial = small_trial();
    (reads ? trial.problem.has_state_source : trial.problem.has_state_target) = true;
    scan_tensors tensors(trial);
    auto& slots = reads ? tensors.state_source : tensors.state_target;
    for (std::int32_t row = 0; row < 4; ++row) set_entry(slots, row, row);
    set_entry(slots, 1, -1);
    set_entry(slots, 2, 3);
    set_entry(slots, 3, -1);
    tensors.upload();
    auto arguments = tensors.arguments();
    // One memory of four slots, one for each row.
    auto const& owner = reads ? tensors.final_states : tensors.initial_states;
    arguments.initial_states = owner.view();
    arguments.final_states = owner.view();
    auto const message = message_of<invalid_argument>([&] { execute(trial.problem, arguments); });
    check_message(message, "chunk_scan",
                  {std::string(reads ? "state_source" : "state_target") + "[2] = 3",
                   "final_states is initial_states", "row 3"});
    tensors.download();
    CHECK(tensors.outputs_are_untouched());
  }
}

}  // namespace
}  // namespace mambatile::testing
