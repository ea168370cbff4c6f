#pragma once

#include <mambatile/scan.hpp>

#include "evaluation/scan_tolerances.hpp"
#include "support/scan_tensors.hpp"
#include "support/scan_trial.hpp"

namespace mambatile::testing {

/// Limits for the tested backend.
[[nodiscard]] evaluation::scan_limits limits_for(scan_problem const& problem,
                                                 std::string const& regime);

/// Runs a trial on the tested backend and checks it against the f64 recurrence, the guards of
/// every buffer included. A failure shows the line that repeats it.
void check_scan(scan_trial const& trial);

/// Runs a trial and returns its tensors, downloaded; only guards are checked.
[[nodiscard]] scan_tensors run_scan_trial(scan_trial const& trial);

/// All outputs as bits, for exact comparisons.
[[nodiscard]] std::vector<std::uint32_t> output_bits(scan_tensors const& tensors);

}  // namespace mambatile::testing
