#pragma once

#include <string_view>

#include <mambatile/scan.hpp>

// How far a scan may be from the f64 recurrence. One table for the tests and the program.

namespace mambatile::evaluation {

/// Limits of tensor_error: `slice` is the relative L2 error of the worst (row, head) slice, `peak`
/// the largest error over the root mean square of its slice.
struct error_limits {
  double slice = 0;
  double peak = 0;
};

struct scan_limits {
  error_limits out;
  error_limits states;  ///< final and intermediate
};

/// What decides the limits, and nothing else.
struct scan_numerics {
  std::string_view backend;
  dtype io = dtype::f32;
  dtype state = dtype::f32;
  products math = products::accurate;
  /// Name of a stress distribution of the inputs; "normal" or empty for none.
  std::string_view regime;
};

/// Decays so strong or steps so uneven that a chunk's running sum loses digits.
[[nodiscard]] bool is_hard_regime(std::string_view regime) noexcept;

[[nodiscard]] scan_limits limits_of_scan(scan_numerics const& numerics) noexcept;

}  // namespace mambatile::evaluation
