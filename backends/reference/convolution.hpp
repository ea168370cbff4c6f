#pragma once

#include <cstddef>
#include <cstdint>

#include <mambatile/conv1d.hpp>

// The convolution from its definition in f64. The reference backend rounds what it yields to the
// caller's tensors; tests take it unrounded. States are exact copies of inputs.

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

/// Receives results, each once.
class conv1d_results {
 public:
  conv1d_results() = default;
  conv1d_results(conv1d_results const&) = delete;
  conv1d_results& operator=(conv1d_results const&) = delete;

  /// out[b, l, c]
  virtual void out(std::int64_t b, std::int64_t l, std::int64_t c, double value) = 0;
  /// All columns of one channel of a state. `offset` is that of the state in final_states, in
  /// elements.
  virtual void final_state(std::int64_t offset, std::int64_t c, double const* columns) = 0;

 protected:
  ~conv1d_results() = default;
};

/// Numbers of scratch that run_conv1d needs.
[[nodiscard]] std::size_t conv1d_scratch(conv1d_update_problem const& problem) noexcept;

/// Computes a checked call on host tensors. Of the outputs among the arguments only the strides of
/// final_states are used; the problem says which results are wanted. A channel's initial state is
/// read before any of its results is given.
void run_conv1d(conv1d_update_problem const& problem, conv1d_update_arguments const& arguments,
                conv1d_results& results, double* scratch);

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
