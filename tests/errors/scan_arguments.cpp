#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/execute.hpp"
#include "support/refusals.hpp"
#include "support/scan_check.hpp"
#include "support/scan_refusals.hpp"
#include "support/scan_views.hpp"
#include "support/tested_backend.hpp"

// Rules that the arguments of a call can break: what execute says, and that nothing was written.

namespace mambatile::testing {
namespace {

using words = std::vector<std::string>;

scan_trial full_trial() {
  scan_trial trial;
  trial.problem = {.max_batch = 2,
                   .max_seqlen = 70,
                   .nheads = 4,
                   .headdim = 6,
                   .ngroups = 2,
                   .dstate = 5,
                   .D = skip::per_head,
                   .has_z = true,
                   .has_dt_bias = true,
                   .has_initial_states = true,
                   .has_final_states = true,
                   .has_total_decay = true,
                   .intermediate_every = 64};
  return trial;
}

struct input {
  char const* name;
  const_tensor_view scan_arguments::*view;
};
struct output {
  char const* name;
  tensor_view scan_arguments::*view;
};

std::vector<input> const full_inputs = {
    {"x", &scan_arguments::x},
    {"dt", &scan_arguments::dt},
    {"A", &scan_arguments::A},
    {"B", &scan_arguments::B},
    {"C", &scan_arguments::C},
    {"D", &scan_arguments::D},
    {"z", &scan_arguments::z},
    {"dt_bias", &scan_arguments::dt_bias},
    {"initial_states", &scan_arguments::initial_states},
};
std::vector<output> const all_outputs = {
    {"out", &scan_arguments::out},
    {"final_states", &scan_arguments::final_states},
    {"intermediate_states", &scan_arguments::intermediate_states},
    {"total_decay", &scan_arguments::total_decay},
};

// The same change for every tensor of the full call, by name and view.
void for_each_tensor(
    std::function<void(std::string const&, std::function<void(scan_arguments&)>)> const& visit,
    std::function<void(const_tensor_view&)> const& change) {
  for (auto const& each : full_inputs) {
    visit(each.name, [=](scan_arguments& arguments) { change(arguments.*each.view); });
  }
  for (auto const& each : all_outputs) {
    visit(each.name, [=](scan_arguments& arguments) {
      auto& view = arguments.*each.view;
      const_tensor_view changed = view;
      change(changed);
      view = {const_cast<void*>(changed.data),
              changed.type,
              changed.where,
              changed.rank,
              changed.extents,
              changed.strides};
    });
  }
}

TEST_CASE("scan arguments: a good call runs", "[errors]") { check_scan(full_trial()); }

TEST_CASE("scan arguments: every expected tensor is there", "[errors]") {
  for_each_tensor(
      [](std::string const& name, auto const& spoil) {
        check_refused_call(full_trial(), spoil, {name + " is absent"});
      },
      [](const_tensor_view& view) { view = {}; });
}

TEST_CASE("scan arguments: optional tensors are there exactly when the problem says so",
          "[errors]") {
  auto trial = full_trial();
  auto& problem = trial.problem;
  problem.D = skip::none;
  problem.has_z = problem.has_dt_bias = problem.has_initial_states = false;
  problem.has_final_states = problem.has_total_decay = false;
  problem.intermediate_every = 0;
  auto const unexpected = [&](char const* name, char const* rule,
                              std::function<void(scan_arguments&)> const& add) {
    check_refused_call(trial, add, {std::string(name) + " was given", rule});
  };
  unexpected("D", "D = none", [](auto& a) { a.D = a.A; });
  unexpected("z", "has_z = false", [](auto& a) { a.z = a.x; });
  unexpected("dt_bias", "has_dt_bias = false", [](auto& a) { a.dt_bias = a.A; });
  unexpected("initial_states", "has_initial_states = false",
             [](auto& a) { a.initial_states = a.x; });
  unexpected("final_states", "has_final_states = false", [](auto& a) { a.final_states = a.out; });
  unexpected("intermediate_states", "intermediate_every = 0",
             [](auto& a) { a.intermediate_states = a.out; });
  unexpected("total_decay", "has_total_decay = false", [](auto& a) { a.total_decay = a.out; });
  unexpected("cu_seqlens", "pack = dense", [](auto& a) { a.cu_seqlens = a.A; });
  unexpected("seq_idx", "pack = dense", [](auto& a) { a.seq_idx = a.A; });
  unexpected("state_source", "has_state_source = false", [](auto& a) { a.state_source = a.A; });
  unexpected("state_target", "has_state_target = false", [](auto& a) { a.state_target = a.A; });

  auto const missing = [](char const* name, char const* rule, auto const& set, auto const& remove) {
    auto with = full_trial();
    set(with);
    check_refused_call(with, remove, {std::string(name) + " is absent", rule});
  };
  missing(
      "state_source", "has_state_source = true",
      [](scan_trial& t) { t.problem.has_state_source = true; },
      [](scan_arguments& a) { a.state_source = {}; });
  missing(
      "state_target", "has_state_target = true",
      [](scan_trial& t) { t.problem.has_state_target = true; },
      [](scan_arguments& a) { a.state_target = {}; });
  missing(
      "seq_idx", "pack = seq_idx", [](scan_trial& t) { t.problem.pack = packing::seq_idx; },
      [](scan_arguments& a) { a.seq_idx = {}; });
  missing(
      "cu_seqlens", "pack = cu_seqlens",
      [](scan_trial& t) {
        t.problem.pack = packing::cu_seqlens;
        t.problem.max_batch = 1;
      },
      [](scan_arguments& a) { a.cu_seqlens = {}; });
}

TEST_CASE("scan arguments: cu_seqlens and seq_idx exclude each other", "[errors]") {
  auto trial = full_trial();
  trial.problem.pack = packing::seq_idx;
  check_refused_call(trial, [](auto& a) { a.cu_seqlens = a.seq_idx; },
                     {"cu_seqlens and seq_idx", "both given"});
}

TEST_CASE("scan arguments: rank", "[errors]") {
  for_each_tensor(
      [](std::string const& name, auto const& spoil) {
        check_refused_call(full_trial(), spoil, {name + " has shape", "of rank", "expected"});
      },
      [](const_tensor_view& view) {
        // One axis of extent 1 more, or one less where five are all there can be.
        if (view.rank < max_rank) {
          view.extents[static_cast<std::size_t>(view.rank++)] = 1;
        } else {
          --view.rank;
        }
      });
}

TEST_CASE("scan arguments: shape, on every axis", "[errors]") {
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(max_rank); ++axis) {
    for (std::int64_t const by : {-1, 1}) {
      for_each_tensor(
          [&](std::string const& name, auto const& spoil) {
            scan_tensors const tensors(full_trial());
            auto before = tensors.arguments();
            auto after = before;
            spoil(after);
            bool const is_changed = [&] {
              for (auto const& each : full_inputs) {
                if ((before.*each.view).extents != (after.*each.view).extents) return true;
              }
              for (auto const& each : all_outputs) {
                if ((before.*each.view).extents != (after.*each.view).extents) return true;
              }
              return false;
            }();
            // x sets batch and seqlen: less of it makes the others too long.
            if (!is_changed) return;
            bool const sets_the_size = name == "x" && axis < 2;
            words expected = {"has shape", "expected"};
            if (!sets_the_size) expected.push_back(name + " has shape");
            check_refused_call(full_trial(), spoil, expected);
          },
          [&](const_tensor_view& view) {
            if (axis < static_cast<std::size_t>(view.rank)) view.extents[axis] += by;
          });
    }
  }
}

TEST_CASE("scan arguments: negative extents are refused", "[errors]") {
  auto trial = full_trial();
  check_refused_call(trial,
                     [](auto& a) {
                       for (auto* view : {&a.x, &a.dt, &a.B, &a.C, &a.z}) view->extents[1] = -1;
                       a.out.extents[1] = -1;
                     },
                     {"x has shape (2, -1, 4, 6)", "negative"});
}

TEST_CASE("scan arguments: more elements than offsets can hold", "[errors]") {
  auto trial = full_trial();
  trial.problem.has_state_source = true;
  check_refused_call(trial,
                     [](auto& a) {
                       a.initial_states.extents[0] = std::int64_t{1} << 60;
                       a.initial_states.strides[0] = 0;
                     },
                     {"initial_states has shape (1152921504606846976, 4, 6, 5)", "64-bit"});
}

TEST_CASE("scan arguments: type", "[errors]") {
  for_each_tensor(
      [](std::string const& name, auto const& spoil) {
        check_refused_call(full_trial(), spoil, {name + " has type i32", "expected f32"});
      },
      [](const_tensor_view& view) { view.type = dtype::i32; });
  auto trial = full_trial();
  trial.problem.io = dtype::bf16;
  check_refused_call(trial, [](auto& a) { a.C.type = dtype::f16; },
                     {"C has type f16", "expected bf16"});
  trial.problem.has_state_source = trial.problem.has_state_target = true;
  trial.problem.pack = packing::seq_idx;
  check_refused_call(trial, [](auto& a) { a.state_source.type = dtype::f32; },
                     {"state_source has type f32", "expected i32"});
  check_refused_call(trial, [](auto& a) { a.state_target.type = dtype::f32; },
                     {"state_target has type f32", "expected i32"});
  check_refused_call(trial, [](auto& a) { a.seq_idx.type = dtype::f32; },
                     {"seq_idx has type f32", "expected i32"});
  trial.problem.pack = packing::cu_seqlens;
  trial.problem.max_batch = trial.problem.max_sequences = 1;
  trial.lengths = {70};
  check_refused_call(trial, [](auto& a) { a.cu_seqlens.type = dtype::f32; },
                     {"cu_seqlens has type f32", "expected i32"});
}

TEST_CASE("scan arguments: device", "[errors]") {
  device const elsewhere{is_host_backend() ? device_kind::cuda : device_kind::host, 0};
  for_each_tensor(
      [&](std::string const& name, auto const& spoil) {
        check_refused_call(full_trial(), spoil,
                           {name + " is on device " + to_string(elsewhere),
                            "expected " + to_string(tested_device())});
      },
      [&](const_tensor_view& view) { view.where = elsewhere; });
}

TEST_CASE("scan arguments: data", "[errors]") {
  for_each_tensor(
      [](std::string const& name, auto const& spoil) {
        check_refused_call(full_trial(), spoil, {name + " has shape", "data is null"});
      },
      [](const_tensor_view& view) { view.data = nullptr; });
  for_each_tensor(
      [](std::string const& name, auto const& spoil) {
        check_refused_call(full_trial(), spoil, {name + " starts at", "multiple", "4 bytes"});
      },
      [](const_tensor_view& view) { view.data = static_cast<std::byte const*>(view.data) + 1; });
}

TEST_CASE("scan arguments: strides whose offsets do not fit into 64 bits", "[errors]") {
  using limits = std::numeric_limits<std::int64_t>;
  // The last one overflows nothing, but leads below address zero.
  for (auto const stride :
       {limits::max() / 2, limits::max(), limits::min(), limits::min() / 2, -(limits::max() / 8)}) {
    for_each_tensor(
        [&](std::string const& name, auto const& spoil) {
          check_refused_call(full_trial(), spoil,
                             {name + " has shape", "strides (" + std::to_string(stride),
                              "span beyond 64-bit offsets"});
        },
        [=](const_tensor_view& view) { view.strides[0] = stride; });
  }
}

TEST_CASE("scan arguments: stride of the last axis", "[errors]") {
  for (std::int64_t const stride : {0, 2, -1}) {
    auto const set = [&](auto member) {
      return [=](scan_arguments& a) { (a.*member).strides[3] = stride; };
    };
    auto const shown = "stride " + std::to_string(stride) + " on its last axis";
    auto const trial = full_trial();
    check_refused_call<unsupported>(trial, set(&scan_arguments::x), {"x has " + shown, "stride 1"});
    check_refused_call<unsupported>(trial, set(&scan_arguments::z), {"z has " + shown, "stride 1"});
    check_refused_call<unsupported>(trial, set(&scan_arguments::B), {"B has " + shown, "stride 1"});
    check_refused_call<unsupported>(trial, set(&scan_arguments::C), {"C has " + shown, "stride 1"});
    check_refused_call<unsupported>(trial, set(&scan_arguments::out),
                                    {"out has " + shown, "stride 1"});
  }
}

TEST_CASE("scan arguments: capacities", "[errors]") {
  auto trial = full_trial();
  trial.spare_capacity = -1;
  check_refused_call(trial, [](auto&) {}, {"batch = 2 exceeds the plan's max_batch = 1"});
  trial.problem.max_batch = 1;
  trial.problem.max_seqlen = 64;
  auto const shorter = [](auto& a) { a = rows_of(a, 0, 0); };
  check_refused_call(trial, shorter, {"seqlen = 64 exceeds the plan's max_seqlen = 63"});
  trial.problem.pack = packing::cu_seqlens;
  trial.problem.max_sequences = 3;
  trial.lengths = {10, 20, 30};
  trial.problem.intermediate_every = 0;
  check_refused_call(trial, [](auto& a) { a = tokens_of(a, 0, 63); },
                     {"sequences = 3 exceeds the plan's max_sequences = 2"});
}

// A queue and a workspace belong to the plan.
TEST_CASE("scan arguments: workspace and queue", "[errors]") {
  auto trial = full_trial();
  trial.problem.has_state_target = true;
  scan_tensors const tensors(trial);
  tensors.upload();
  auto const plan = tested_backend().plan(trial.problem, tested_device());
  REQUIRE(plan.workspace_bytes() > 0);
  guarded_memory memory(plan.workspace_bytes() + workspace_alignment);
  memory.upload();
  device const elsewhere{is_host_backend() ? device_kind::cuda : device_kind::host, 0};
  workspace_view const good{memory.data(), plan.workspace_bytes(), plan.where()};
  queue const on{.where = plan.where()};
  auto const refuse = [&](workspace_view const& workspace, queue const& queue_given,
                          words const& expected) {
    auto const message = message_of<invalid_argument>(
        [&] { plan.execute(tensors.arguments(), workspace, queue_given); });
    check_message(message, "chunk_scan", expected);
  };
  auto const needed = "the plan needs " + std::to_string(plan.workspace_bytes());
  refuse({}, on, {"workspace has 0 bytes", needed});
  refuse({memory.data(), plan.workspace_bytes() - 1, plan.where()}, on,
         {"workspace has " + std::to_string(plan.workspace_bytes() - 1) + " bytes", needed});
  refuse({good.data, good.bytes, elsewhere}, on,
         {"workspace is on device " + to_string(elsewhere)});
  refuse({static_cast<std::byte*>(memory.data()) + 64, good.bytes, good.where}, on,
         {"workspace is not aligned to 256 bytes"});
  refuse(good, {.where = elsewhere}, {"queue is on device " + to_string(elsewhere)});
  refuse(good, {.where = plan.where(), .threads = -1}, {"queue.threads = -1"});
  if (is_host_backend()) {
    refuse(good, {.where = plan.where(), .threads = 100000}, {"queue.threads = 100000"});
  }
  tensors.download();
  CHECK(tensors.outputs_are_untouched());
  memory.download();
  CHECK(memory.is_untouched());
}

}  // namespace
}  // namespace mambatile::testing
