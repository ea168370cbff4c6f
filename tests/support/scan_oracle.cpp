#include "support/scan_oracle.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>

#include "evaluation/tensor_error.hpp"
#include "reference/recurrence.hpp"
#include "support/test_tensor.hpp"

namespace mambatile::testing {
namespace {

using namespace mambatile::detail::reference;

// A NaN that no computation yields.
constexpr double untouched = std::bit_cast<double>(std::uint64_t{0x7ff8'dead'beef'0001U});

class unrounded_results final : public scan_results {
 public:
  unrounded_results(scan_arguments const& host, scan_expectation& to) : host_(host), to_(to) {
    auto const reserve = [](std::vector<double>& values, const_tensor_view const& view) {
      values.assign(static_cast<std::size_t>(view.size()), untouched);
    };
    reserve(to.out, host.out);
    reserve(to.final_states, host.final_states);
    reserve(to.intermediate_states, host.intermediate_states);
    reserve(to.total_decay, host.total_decay);
  }

  void out(std::int64_t b, std::int64_t l, std::int64_t h, double const* values) override {
    auto const& out = host_.out;
    auto const row = (b * out.extent(1) + l) * out.extent(2) + h;
    std::copy_n(values, out.extent(3), to_.out.begin() + row * out.extent(3));
  }
  void final_state(std::int64_t row, std::int64_t h, std::int64_t n,
                   double const* values) override {
    auto const& states = host_.final_states;
    column(to_.final_states, states, row * states.extent(1) + h, n, values);
  }
  void intermediate_state(std::int64_t b, std::int64_t row, std::int64_t h, std::int64_t n,
                          double const* values) override {
    auto const& states = host_.intermediate_states;
    column(to_.intermediate_states, states, (b * states.extent(1) + row) * states.extent(2) + h, n,
           values);
  }
  void total_decay(std::int64_t row, std::int64_t h, double value) override {
    to_.total_decay[static_cast<std::size_t>(row * host_.total_decay.extent(1) + h)] = value;
  }

 private:
  static void column(std::vector<double>& to, const_tensor_view const& states, std::int64_t index,
                     std::int64_t n, double const* values) {
    auto const headdim = states.extent(states.rank - 2);
    auto const dstate = states.extent(states.rank - 1);
    for (std::int64_t p = 0; p < headdim; ++p) {
      to[static_cast<std::size_t>((index * headdim + p) * dstate + n)] = values[p];
    }
  }

  scan_arguments const& host_;
  scan_expectation& to_;
};

std::string describe(evaluation::tensor_error const& error,
                     evaluation::error_limits const& limits) {
  return fmt::format("slice {:.3g} (limit {:.3g}), peak {:.3g} (limit {:.3g}){}", error.slice,
                     limits.slice, error.peak, limits.peak,
                     error.finite ? "" : ", not finite where expected");
}

// `slice_of(index)` for the row-major index of an element.
template <class SliceOf>
void check_tensor(char const* name, std::vector<double> const& expected,
                  const_tensor_view const& before, const_tensor_view const& result,
                  evaluation::error_limits const& limits, std::int64_t slices,
                  SliceOf const& slice_of) {
  if (!result) return;
  auto const got = values(result);
  auto const got_bits = bits(result);
  auto const old_bits = bits(before);
  evaluation::error_accumulator errors(slices, result.type);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (scan_expectation::is_untouched(expected[i])) {
      if (got_bits[i] != old_bits[i]) ++changed;
    } else {
      errors.add(slice_of(static_cast<std::int64_t>(i)), got[i], expected[i]);
    }
  }
  auto const error = errors.result();
  INFO(name << ": " << describe(error, limits));
  CHECK(error.within(limits));
  INFO("elements of " << name << " that nobody owns but that changed");
  CHECK(changed == 0);
}

void check_padding(scan_arguments const& host, const_tensor_view const& out) {
  auto const ids = values(host.seq_idx);
  auto const got = bits(out);
  auto const per_token = static_cast<std::size_t>(out.extent(2) * out.extent(3));
  std::size_t wrong = 0;
  for (std::size_t token = 0; token < ids.size(); ++token) {
    if (ids[token] >= 0) continue;
    for (std::size_t i = 0; i < per_token; ++i)
      if (got[token * per_token + i] != 0) ++wrong;
  }
  INFO("elements of out at padding that are not 0");
  CHECK(wrong == 0);
}

// exp(sum of delta A): the exponent's own rounding error grows with the exponent.
void check_total_decay(std::vector<double> const& expected, const_tensor_view const& result,
                       double limit) {
  if (!result) return;
  auto const got = values(result);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double const exponent = expected[i] > 0 ? -std::log(expected[i]) : 0.0;
    double const allowed =
        limit * std::max(1.0, exponent) * expected[i] + 0x1p-149;  // f32's smallest number
    worst =
        std::max(worst, std::isfinite(got[i]) ? std::fabs(got[i] - expected[i]) / allowed : 1e300);
  }
  INFO("total_decay: error over what is allowed");
  CHECK(worst <= 1.0);
}

}  // namespace

bool scan_expectation::is_untouched(double value) noexcept {
  return std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(untouched);
}

scan_expectation expect_scan(scan_problem const& problem, scan_arguments const& host) {
  scan_expectation expected;
  unrounded_results results(host, expected);
  std::vector<double> scratch(scan_scratch(problem));
  run_scan(problem, host, results, scratch.data());
  return expected;
}

void check_scan_results(scan_problem const& problem, scan_expectation const& expected,
                        scan_arguments const& before, scan_arguments const& results,
                        evaluation::scan_limits const& limits) {
  auto const nheads = problem.nheads;
  auto const headdim = problem.headdim;
  // One slice per row and head, as the limits are meant. A sequence of one token alone may be a
  // single dot product that cancels, which no fixed limit fits.
  auto const seqlen = before.x.extent(1);
  check_tensor("out", expected.out, before.out, results.out, limits.out,
               before.x.extent(0) * nheads, [&](std::int64_t index) {
                 auto const row = index / (headdim * nheads * seqlen);
                 return row * nheads + index / headdim % nheads;
               });
  auto const state_size = headdim * problem.dstate;
  auto const by_head = [&](std::int64_t index) { return index / state_size; };
  check_tensor("final_states", expected.final_states, before.final_states, results.final_states,
               limits.states, before.final_states.size() / std::max<std::int64_t>(state_size, 1),
               by_head);
  check_tensor("intermediate_states", expected.intermediate_states, before.intermediate_states,
               results.intermediate_states, limits.states,
               before.intermediate_states.size() / std::max<std::int64_t>(state_size, 1), by_head);
  check_total_decay(expected.total_decay, results.total_decay, limits.states.slice);
  if (problem.pack == packing::seq_idx) check_padding(before, results.out);
}

}  // namespace mambatile::testing
