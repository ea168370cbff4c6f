#include "support/scan_check.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/backend_under_test.hpp"
#include "support/execute.hpp"
#include "support/scan_oracle.hpp"

namespace mambatile::testing {

evaluation::scan_limits limits_for(scan_problem const& problem, std::string const& regime) {
  return evaluation::limits_of_scan({.backend = backend_under_test(),
                                     .io = problem.io,
                                     .state = problem.state,
                                     .math = problem.math,
                                     .regime = regime});
}

scan_tensors run_scan_trial(scan_trial const& trial) {
  INFO(repro_line(trial));
  scan_tensors tensors(trial);
  tensors.upload();
  execute(trial.planned_problem(), tensors.arguments(), trial.threads);
  tensors.download();
  tensors.check_guards();
  return tensors;
}

void check_scan(scan_trial const& trial) {
  auto const tensors = run_scan_trial(trial);
  INFO(repro_line(trial));
  check_scan_results(trial.problem, expect_scan(trial.problem, tensors.images()), tensors.images(),
                     tensors.results(), limits_for(trial.problem, trial.regime));
}

std::vector<std::uint32_t> output_bits(scan_tensors const& tensors) {
  auto const results = tensors.results();
  std::vector<std::uint32_t> all;
  for (auto const& view :
       {results.out, results.final_states, results.intermediate_states, results.total_decay}) {
    auto const part = bits(view);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace mambatile::testing
