#pragma once

#include <cstddef>
#include <cstdint>

#include <mambatile/state_update.hpp>

// state_update as the token recurrence in f64. The reference backend rounds what it yields to the
// caller's tensors; tests take it unrounded.

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

/// Receives results. Vectors run over headdim; each result is given once.
class update_results {
 public:
  update_results() = default;
  update_results(update_results const&) = delete;
  update_results& operator=(update_results const&) = delete;

  /// out[b, k, h, :]
  virtual void out(std::int64_t b, std::int64_t k, std::int64_t h, double const* values) = 0;
  /// The state of head h of row b after token k, (dstate, headdim); `offset` is that of the row's
  /// (nheads, headdim, dstate) in final_states, in elements.
  virtual void state(std::int64_t b, std::int64_t k, std::int64_t h, std::int64_t offset,
                     double const* values) = 0;

 protected:
  ~update_results() = default;
};

/// Numbers of scratch that run_update needs.
[[nodiscard]] std::size_t update_scratch(state_update_problem const& problem) noexcept;

/// Computes a checked call on host tensors that have their token axis. Of the outputs among the
/// arguments only shapes and strides are used. A head's state is read before any of its results is
/// given.
void run_update(state_update_problem const& problem, state_update_arguments const& arguments,
                update_results& results, double* scratch);

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
