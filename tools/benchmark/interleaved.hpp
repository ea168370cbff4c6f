#pragma once

#include <cstdint>
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
  std::vector<double> samples = {};  ///< one a round
};

/// What `of` took over what `to` took in the same round: the median of all rounds. What disturbs a
/// round disturbs both.
[[nodiscard]] double median_ratio(timing const& of, timing const& to);

/// Calls every candidate once to warm up, then round by round. One result per candidate, in order.
[[nodiscard]] std::vector<timing> time_interleaved(
    std::vector<std::function<void()>> const& candidates, interleaving const& how = {});

/// The same for work that comes in pieces: a round does every piece once with every candidate,
/// candidates in turn within each piece. For long rounds. Times are means over the pieces.
[[nodiscard]] std::vector<timing> time_in_turn(
    std::vector<std::function<void(std::int64_t piece)>> const& candidates, std::int64_t pieces,
    interleaving const& how = {});

}  // namespace mambatile::benchmark
