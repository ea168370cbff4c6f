#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <mambatile/tensor_view.hpp>

#include "evaluation/scan_tolerances.hpp"

// How far a tensor is from what was expected.

namespace mambatile::evaluation {

struct tensor_error {
  /// ||got - want|| / ||want||, the worst over the slices. Infinite where a slice whose expected
  /// values are all zero is not exactly zero.
  double slice = 0;
  /// max |got - want| / root mean square of the slice it lies in, the worst over the slices; of a
  /// difference, what one rounding to a 16-bit type explains does not count.
  double peak = 0;
  /// False where got holds a NaN or an infinity that want does not have.
  bool finite = true;

  [[nodiscard]] bool within(error_limits const& limits) const noexcept {
    return finite && slice <= limits.slice && peak <= limits.peak;
  }
  /// The larger of two errors, measure by measure.
  [[nodiscard]] tensor_error combined_with(tensor_error const& other) const noexcept;
};

/// Collects the differences slice by slice. `stored` is the type that holds what was got: below
/// f16's smallest normal number, what rounding to it loses does not count.
class error_accumulator {
 public:
  explicit error_accumulator(std::int64_t slices, dtype stored = dtype::f32)
      : slices_(static_cast<std::size_t>(slices)), stored_(stored) {}

  void add(std::int64_t slice, double got, double want) noexcept;
  [[nodiscard]] tensor_error result() const noexcept;

 private:
  struct slice_sums {
    double difference = 0;  // of squares
    double want = 0;        // of squares
    double largest = 0;
    std::int64_t count = 0;
  };
  std::vector<slice_sums> slices_;
  dtype stored_;
  bool finite_ = true;
};

/// Compares two host tensors of one shape, of floating-point types. A slice is what remains when
/// the indices on the axes of `slice_axes` (bit i = axis i) are held.
[[nodiscard]] tensor_error compare(const_tensor_view const& got, const_tensor_view const& want,
                                   unsigned slice_axes);

/// Axes of a slice: out (b, l, h, p) by row and head, states (r, h, p, n) by row and head.
inline constexpr unsigned out_slices = 0b0101;
inline constexpr unsigned state_slices = 0b0011;

/// One element of a host tensor as a number.
[[nodiscard]] double element(const_tensor_view const& view, std::int64_t offset) noexcept;

}  // namespace mambatile::evaluation
