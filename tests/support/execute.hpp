#pragma once

#include <cstdint>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/plan.hpp>

#include "support/guarded_memory.hpp"
#include "support/tested_backend.hpp"

namespace mambatile::testing {

/// Executes a plan in guarded workspace full of NaN and waits for it. `threads` as in queue.
template <class Problem>
void execute(operator_plan<Problem> const& plan, typename Problem::arguments_type const& arguments,
             int threads = 0) {
  guarded_memory workspace(plan.workspace_bytes());
  workspace.allow_all();
  workspace.upload();
  workspace_view const scratch{workspace.data(), workspace.bytes(), plan.where()};
  queue const on{.where = plan.where(), .threads = threads};
  plan.execute(arguments, scratch, on);
  auto const status = plan.status(scratch, on);
  CHECK(status.message == std::string());
  workspace.download();
  CHECK(workspace.stray_write() == std::string());
}

/// Plans on the tested device and executes.
template <class Problem>
void execute(Problem const& problem, typename Problem::arguments_type const& arguments,
             int threads = 0) {
  execute(tested_backend().plan(problem, tested_device()), arguments, threads);
}

}  // namespace mambatile::testing
