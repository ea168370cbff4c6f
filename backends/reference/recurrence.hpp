#pragma once

#include <cstddef>
#include <cstdint>

#include <mambatile/scan.hpp>

// The scan as the token recurrence in f64. The reference backend rounds what it yields to the
// caller's tensors; tests take it unrounded.

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

/// Receives results. Vectors run over headdim; each result is given once.
class scan_results {
 public:
  scan_results() = default;
  scan_results(scan_results const&) = delete;
  scan_results& operator=(scan_results const&) = delete;

  /// out[b, l, h, :]
  virtual void out(std::int64_t b, std::int64_t l, std::int64_t h, double const* values) = 0;
  /// final_states[row, h, :, n]; `row` is the slot where the call has state_target.
  virtual void final_state(std::int64_t row, std::int64_t h, std::int64_t n,
                           double const* values) = 0;
  /// intermediate_states[b, row, h, :, n]
  virtual void intermediate_state(std::int64_t b, std::int64_t row, std::int64_t h, std::int64_t n,
                                  double const* values) = 0;
  /// total_decay[row, h]
  virtual void total_decay(std::int64_t row, std::int64_t h, double value) = 0;

 protected:
  ~scan_results() = default;
};

/// Numbers of scratch that run_scan needs.
[[nodiscard]] std::size_t scan_scratch(scan_problem const& problem) noexcept;

/// Computes a checked call on host tensors. Of the outputs among the arguments nothing is used;
/// the problem says which results are wanted. A row's initial state is read before any of its
/// results is given.
void run_scan(scan_problem const& problem, scan_arguments const& arguments, scan_results& results,
              double* scratch);

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
