#pragma once

#include <functional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/execute.hpp"
#include "support/refusals.hpp"
#include "support/scan_tensors.hpp"

namespace mambatile::testing {

/// Runs the trial's call after `spoil` and checks that it is refused in these words, and that
/// neither outputs nor inputs changed.
template <class Exception = invalid_argument>
void check_refused_call(scan_trial const& trial, std::function<void(scan_arguments&)> const& spoil,
                        std::vector<std::string> const& expected) {
  scan_tensors const tensors(trial);
  tensors.upload();
  auto arguments = tensors.arguments();
  spoil(arguments);
  auto const message =
      message_of<Exception>([&] { execute(trial.planned_problem(), arguments, trial.threads); });
  check_message(message, "chunk_scan", expected);
  tensors.download();
  CHECK(tensors.outputs_are_untouched());
}

}  // namespace mambatile::testing
