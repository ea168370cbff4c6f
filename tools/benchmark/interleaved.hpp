#pragma once

#include <functional>
#include <vector>

// Timing of several ways to do the same work, in turn, so that what the machine does meanwhile
// (clock, neighbours) meets all of them alike.

namespace mambatile::benchmark {

struct interleaving {
  double seconds = 1.0;  ///< what all rounds of all candidates may take; some rounds run always
  double sample_seconds = 2e-3;  ///< a sample repeats its candidate until it is about this long
  int least_rounds = 5;
  int most_rounds = 200;
};

/// Milliseconds of one call.
struct timing {
  double minimum = 0;
  double median = 0;
  int rounds = 0;
};

/// Calls every candidate once to warm up, then round by round. One result per candidate, in order.
[[nodiscard]] std::vector<timing> time_interleaved(
    std::vector<std::function<void()>> const& candidates, interleaving const& how = {});

}  // namespace mambatile::benchmark
