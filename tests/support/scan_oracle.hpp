#pragma once

#include <cstdint>
#include <vector>

#include <mambatile/scan.hpp>

#include "evaluation/scan_tolerances.hpp"

namespace mambatile::testing {

/// The results of a scan by the f64 recurrence, unrounded, in row-major order of the outputs'
/// shapes.
struct scan_expectation {
  std::vector<double> out;
  std::vector<double> final_states;
  std::vector<double> intermediate_states;
  std::vector<double> total_decay;

  /// True for the elements that a call must leave as they are.
  [[nodiscard]] static bool is_untouched(double value) noexcept;
};

/// `host` has inputs with host data, and outputs of which only the shapes count.
[[nodiscard]] scan_expectation expect_scan(scan_problem const& problem, scan_arguments const& host);

/// Checks results on the host, in the outputs of `results`, against the expectation: errors within
/// limits, elements finite, padding exactly zero, and elements that nobody owns as in `before`.
void check_scan_results(scan_problem const& problem, scan_expectation const& expected,
                        scan_arguments const& before, scan_arguments const& results,
                        evaluation::scan_limits const& limits);

}  // namespace mambatile::testing
