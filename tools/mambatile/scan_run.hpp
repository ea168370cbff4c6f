#pragma once

#include <optional>
#include <string>

#include <mambatile/backend.hpp>
#include <mambatile/scan.hpp>

#include "evaluation/host_tensor.hpp"
#include "evaluation/scan_case.hpp"
#include "evaluation/tensor_error.hpp"

// Runs the scan of a file on a backend, times it and compares it with what the file expects.

namespace mambatile::program {

struct compared {
  evaluation::tensor_error error;
  evaluation::error_limits limits;
  [[nodiscard]] bool pass() const noexcept { return error.within(limits); }
};

struct scan_run {
  evaluation::host_tensor out;           ///< (b, l, h, p), io type
  evaluation::host_tensor final_states;  ///< as the case says, its state type
  scan_problem problem;
  std::string plan;
  std::size_t workspace_bytes = 0;
  double ms = 0;  ///< median
  double ms_min = 0;
  /// Absent where the file has no such expectation.
  std::optional<compared> out_error, final_states_error;

  [[nodiscard]] bool has_expectation() const noexcept { return out_error || final_states_error; }
  [[nodiscard]] bool pass() const noexcept {
    return (!out_error || out_error->pass()) && (!final_states_error || final_states_error->pass());
  }
};

/// `repeat` timed calls; where there are several, one more before them warms up.
[[nodiscard]] scan_run run_scan(evaluation::scan_case const& what, backend const& on,
                                scan_options const& options, int repeat);

}  // namespace mambatile::program
