#pragma once

#include <vector>

#include <mambatile/state_update.hpp>

#include "evaluation/scan_tolerances.hpp"
#include "support/update_trial.hpp"

namespace mambatile::testing {

/// Limits for the tested backend.
[[nodiscard]] evaluation::scan_limits limits_for(state_update_problem const& problem);

/// The smallest problem for a call that has parts of a trial's tensors.
[[nodiscard]] state_update_problem problem_of(update_trial const& trial,
                                              state_update_arguments const& call);

/// Runs a trial on the tested backend; guards are checked.
[[nodiscard]] update_tensors run_update_trial(update_trial const& trial);

/// Runs a trial and checks it against the f64 recurrence: errors within limits, rows of padding
/// exactly zero, states that nobody writes as they were.
void check_update(update_trial const& trial);

}  // namespace mambatile::testing
