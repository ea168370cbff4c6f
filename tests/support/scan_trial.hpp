#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <mambatile/scan.hpp>

#include "support/test_tensor.hpp"

namespace mambatile::testing {

/// One scan to be tried: what is computed, on which numbers, and how they lie in memory. Everything
/// that a trial does follows from these fields.
struct scan_trial {
  /// Sizes and options. Capacities are the sizes of the call; planned_problem adds to them.
  scan_problem problem;

  std::uint64_t seed = 1;
  /// Distribution of A and dt: "normal" (A = -uniform(1, 16), delta log-uniform in [1e-3, 1e-1]) or
  /// one of the hard sets "bigdecay" (decays near e^-50 a token), "strongA" (A down to -1000),
  /// "cliff" (bursts of huge decay between tiny ones), "smalldt" (softplus far below zero),
  /// "dtzero" (half the steps are 0), "hugedt" (steps of 1e3).
  std::string regime = "normal";

  /// Lengths of sequences. cu_seqlens: in the one row; what they leave of max_seqlen is beyond the
  /// last. seq_idx: in every row, cyclically, until it is full.
  std::vector<std::int64_t> lengths;
  /// seq_idx: every k-th token is padding; 0 = none.
  std::int64_t padding_every = 0;

  arrangement inputs = arrangement::packed;
  arrangement outputs = arrangement::packed;
  arrangement states = arrangement::packed;
  /// x, z, B, C and out are columns of one buffer with rows of odd width.
  bool one_buffer = false;
  /// final_states is the same view as initial_states.
  bool in_place = false;
  /// By how much the plan's capacities exceed the call.
  std::int64_t spare_capacity = 0;
  /// As queue::threads.
  int threads = 0;

  [[nodiscard]] scan_problem planned_problem() const;
};

/// "field=value" words; parse_trial reads them back. Fields that have their default are left out.
[[nodiscard]] std::string to_string(scan_trial const& trial);
[[nodiscard]] scan_trial parse_trial(std::string_view text);
/// The command line that runs this trial alone.
[[nodiscard]] std::string repro_line(scan_trial const& trial);

}  // namespace mambatile::testing
