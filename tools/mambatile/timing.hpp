#pragma once

#include <algorithm>
#include <vector>

#include "text.hpp"

namespace mambatile::program {

/// Wall-clock time of one call.
template <class Call>
[[nodiscard]] double milliseconds_of(Call const& call) {
  double const start = seconds_now();
  call();
  return (seconds_now() - start) * 1e3;
}

/// The middle value, or the mean of the two in the middle; 0 for none.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  auto const middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace mambatile::program
