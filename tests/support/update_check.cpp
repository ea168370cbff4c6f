#include "support/update_check.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "evaluation/tensor_error.hpp"
#include "reference/update_recurrence.hpp"
#include "state_update_forms.hpp"
#include "support/backend_under_test.hpp"
#include "support/execute.hpp"

namespace mambatile::testing {
namespace {

using namespace mambatile::detail::reference;

// A NaN that no computation yields.
constexpr double untouched = std::bit_cast<double>(std::uint64_t{0x7ff8'dead'beef'0002U});

bool is_untouched(double value) {
  return std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(untouched);
}

// What each element of the outputs should be, at its offset in the outputs' images.
class expectation final : public update_results {
 public:
  explicit expectation(state_update_arguments const& host) : host_(host) {
    reserve(out_values, host.out);
    reserve(state_values, host.final_states);
  }

  void out(std::int64_t b, std::int64_t k, std::int64_t h, double const* values) override {
    auto const& out = host_.out;
    auto const base = b * out.stride(0) + k * out.stride(1) + h * out.stride(2);
    for (std::int64_t p = 0; p < out.extent(3); ++p) at(out_values, base + p) = values[p];
  }
  void state(std::int64_t /*b*/, std::int64_t /*k*/, std::int64_t h, std::int64_t offset,
             double const* values) override {
    auto const& states = host_.final_states;
    auto const axis = states.rank - 3;
    auto const headdim = states.extent(axis + 1);
    for (std::int64_t p = 0; p < headdim; ++p) {
      for (std::int64_t n = 0; n < states.extent(axis + 2); ++n) {
        at(state_values, offset + h * states.stride(axis) + p * states.stride(axis + 1) +
                             n * states.stride(axis + 2)) = values[n * headdim + p];
      }
    }
  }

  static double& at(std::vector<double>& values, std::int64_t offset) {
    return values[static_cast<std::size_t>(offset)];
  }

  std::vector<double> out_values;
  std::vector<double> state_values;

 private:
  static void reserve(std::vector<double>& values, const_tensor_view const& view) {
    std::int64_t last = -1;
    for_each_offset(view, [&](std::int64_t offset) { last = std::max(last, offset); });
    values.assign(static_cast<std::size_t>(last + 1), untouched);
  }

  state_update_arguments const& host_;
};

// `slice_of(index)` for the row-major index of an element.
template <class SliceOf>
void check_tensor(char const* name, std::vector<double>& expected, const_tensor_view const& before,
                  const_tensor_view const& result, evaluation::error_limits const& limits,
                  SliceOf const& slice_of) {
  if (result.size() == 0) return;
  auto const old_bits = bits(before);
  auto const new_bits = bits(result);
  evaluation::error_accumulator errors(slice_of(result.size() - 1) + 1);
  std::int64_t index = 0;
  std::size_t changed = 0;
  for_each_offset(result, [&](std::int64_t offset) {
    double const want = expectation::at(expected, offset);
    if (!is_untouched(want)) {
      errors.add(slice_of(index), test_tensor::get(result, offset), want);
    } else if (old_bits[static_cast<std::size_t>(index)] !=
               new_bits[static_cast<std::size_t>(index)]) {
      ++changed;
    }
    ++index;
  });
  auto const error = errors.result();
  INFO(name << ": slice " << error.slice << " (limit " << limits.slice << "), peak " << error.peak
            << " (limit " << limits.peak << "), finite " << error.finite);
  CHECK(error.within(limits));
  INFO("elements of " << name << " that nobody owns but that changed");
  CHECK(changed == 0);
}

}  // namespace

evaluation::scan_limits limits_for(state_update_problem const& problem) {
  auto limits = evaluation::limits_of_scan(
      {.backend = backend_under_test(), .io = problem.io, .state = problem.state, .regime = {}});
  if (problem.state_rounding == rounding::stochastic) {
    // Up to a whole unit in the last place instead of half of one.
    limits.states.slice *= 2;
    limits.states.peak *= 2;
  }
  return limits;
}

state_update_problem problem_of(update_trial const& trial, state_update_arguments const& call) {
  auto problem = make_problem(call);
  problem.dt_softplus = trial.problem.dt_softplus;
  problem.state_rounding = trial.problem.state_rounding;
  return problem;
}

update_tensors run_update_trial(update_trial const& trial) {
  INFO(to_string(trial));
  update_tensors tensors(trial);
  tensors.upload();
  execute(trial.planned_problem(), tensors.arguments(), trial.threads);
  tensors.download();
  tensors.check_guards();
  return tensors;
}

void check_update(update_trial const& trial) {
  auto const tensors = run_update_trial(trial);
  INFO(to_string(trial));
  auto const before = mambatile::detail::with_token_axis(tensors.images());
  auto const results = mambatile::detail::with_token_axis(tensors.results());
  expectation expected(before);
  std::vector<double> scratch(update_scratch(trial.problem));
  run_update(trial.problem, before, expected, scratch.data());
  auto const limits = limits_for(trial.problem);
  auto const h = trial.problem.nheads;
  auto const p = trial.problem.headdim;
  auto const per_row = before.x.extent(1) * h * p;
  // A slice is a row's head over all tokens, and a state.
  check_tensor("out", expected.out_values, before.out, results.out, limits.out,
               [&](std::int64_t index) { return index / per_row * h + index / p % h; });
  check_tensor("final_states", expected.state_values, before.final_states, results.final_states,
               limits.states,
               [&](std::int64_t index) { return index / (p * trial.problem.dstate); });
}

}  // namespace mambatile::testing
