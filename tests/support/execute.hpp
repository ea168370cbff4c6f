#pragma once

#include <cstdint>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/errors.hpp>
#include <mambatile/plan.hpp>

#include "support/guarded_memory.hpp"
#include "support/tested_backend.hpp"

namespace mambatile::testing {

/// What check_indices says about a call; empty when nothing.
template <class Problem>
[[nodiscard]] std::string complaint_of(operator_plan<Problem> const& plan,
                                       typename Problem::arguments_type const& arguments,
                                       queue const& on) {
  try {
    plan.check_indices(arguments, on);
    return {};
  } catch (error const& complaint) {
    return complaint.what();
  }
}

/// Executes a plan in guarded workspace full of NaN and waits for it. `threads` as in queue.
/// check_indices must find what execute finds.
template <class Problem>
void execute(operator_plan<Problem> const& plan, typename Problem::arguments_type const& arguments,
             int threads = 0) {
  guarded_memory workspace(plan.workspace_bytes());
  workspace.allow_all();
  workspace.upload();
  workspace_view const scratch{workspace.data(), workspace.bytes(), plan.where()};
  queue const on{.where = plan.where(), .threads = threads};
  auto const complaint = complaint_of(plan, arguments, on);
  try {
    plan.execute(arguments, scratch, on);
  } catch (error const& refusal) {
    CHECK(complaint == refusal.what());
    throw;
  }
  CHECK(complaint == std::string());
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
