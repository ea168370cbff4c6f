#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/execute.hpp"
#include "support/refusals.hpp"
#include "support/scan_check.hpp"
#include "support/scan_refusals.hpp"
#include "support/tested_backend.hpp"

// Outputs that share memory with another tensor, or with themselves.

namespace mambatile::testing {
namespace {

scan_trial square_trial() {
  // nheads * headdim = ngroups * dstate, so that any tensor could lie where another does.
  scan_trial trial;
  trial.problem = {.max_batch = 2,
                   .max_seqlen = 64,
                   .nheads = 3,
                   .headdim = 4,
                   .ngroups = 3,
                   .dstate = 4,
                   .D = skip::per_channel,
                   .has_z = true,
                   .has_dt_bias = true,
                   .has_initial_states = true,
                   .has_final_states = true,
                   .has_total_decay = true,
                   .intermediate_every = 64};
  return trial;
}

void check_refused_overlap(std::function<void(scan_arguments&)> const& spoil,
                           std::vector<std::string> const& expected) {
  check_refused_call(square_trial(), spoil, expected);
}

// Moves the smaller tensor into the larger one, so that no third one is touched.
template <class Left, class Right>
void share_memory(Left& left, Right& right) {
  auto const bytes = [](const_tensor_view const& view) {
    return view.size() * static_cast<std::int64_t>(size_of(view.type));
  };
  if constexpr (std::is_same_v<Left, Right>) {
    (bytes(left) <= bytes(right) ? left : right).data =
        bytes(left) <= bytes(right) ? right.data : left.data;
  } else if (bytes(left) <= bytes(right)) {
    left.data = const_cast<void*>(right.data);
  } else {
    right.data = left.data;
  }
}

TEST_CASE("scan overlaps: an output with an input", "[errors]") {
  struct input {
    char const* name;
    const_tensor_view scan_arguments::*view;
  };
  struct output {
    char const* name;
    tensor_view scan_arguments::*view;
  };
  for (auto const& in :
       {input{"x", &scan_arguments::x}, input{"dt", &scan_arguments::dt},
        input{"A", &scan_arguments::A}, input{"B", &scan_arguments::B},
        input{"C", &scan_arguments::C}, input{"D", &scan_arguments::D},
        input{"z", &scan_arguments::z}, input{"dt_bias", &scan_arguments::dt_bias}}) {
    for (auto const& out : {output{"out", &scan_arguments::out},
                            output{"final_states", &scan_arguments::final_states},
                            output{"total_decay", &scan_arguments::total_decay},
                            output{"intermediate_states", &scan_arguments::intermediate_states}}) {
      check_refused_overlap([&](auto& a) { share_memory(a.*out.view, a.*in.view); },
                            {std::string(out.name) + " overlaps " + in.name});
    }
  }
}

TEST_CASE("scan overlaps: two outputs", "[errors]") {
  check_refused_overlap([](auto& a) { share_memory(a.final_states, a.out); },
                        {"final_states overlaps out"});
  check_refused_overlap([](auto& a) { share_memory(a.intermediate_states, a.final_states); },
                        {"intermediate_states overlaps final_states"});
  check_refused_overlap([](auto& a) { share_memory(a.total_decay, a.out); },
                        {"total_decay overlaps out"});
}

TEST_CASE("scan overlaps: states in place are the identical view, or apart", "[errors]") {
  auto const first_element = [](tensor_view const& view, std::int64_t offset) {
    return static_cast<void*>(static_cast<float*>(view.data) + offset);
  };
  check_refused_overlap([&](auto& a) { a.initial_states.data = first_element(a.final_states, 1); },
                        {"final_states overlaps initial_states", "identical"});
  check_refused_overlap(
      [&](auto& a) {
        a.initial_states.data = a.final_states.data;
        std::swap(a.initial_states.strides[2], a.initial_states.strides[3]);
      },
      {"final_states overlaps initial_states", "identical"});
}

TEST_CASE("scan overlaps: elements of one output", "[errors]") {
  check_refused_overlap([](auto& a) { a.out.strides[1] = 0; },
                        {"out with shape (2, 64, 3, 4)", "overlap each other"});
  check_refused_overlap([](auto& a) { a.final_states.strides[3] = 0; },
                        {"final_states with shape (2, 3, 4, 4)", "overlap each other"});
  check_refused_overlap([](auto& a) { a.total_decay.strides[0] = 1; },
                        {"total_decay with shape (2, 3)", "overlap each other"});
  check_refused_overlap([](auto& a) { a.intermediate_states.strides[0] = 1; },
                        {"intermediate_states with shape (2, 1, 3, 4, 4)", "overlap each other"});
}

TEST_CASE("scan overlaps: columns of one buffer are apart", "[errors]") {
  auto trial = square_trial();
  trial.one_buffer = true;
  check_scan(trial);
}

}  // namespace
}  // namespace mambatile::testing
