#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <mambatile/scan.hpp>
#include <mambatile/tensor_view.hpp>

// Other libraries' operators, to be timed beside ours in one process, on the same inputs and
// threads. Which peers exist is decided when the program is built.

namespace mambatile::benchmark {

/// One operator of a peer, set up on inputs in the peer's own layouts. What conversion costs is not
/// part of run().
class peer_run {
 public:
  virtual ~peer_run() = default;
  virtual void run() = 0;
  /// What run() computed, in our layouts, as far as our operator and the peer's cover the same;
  /// what is ours alone (D x of a scan) is added here, outside the timing. Call after run().
  [[nodiscard]] virtual const_tensor_view out() = 0;
  /// Absent where the operator has none.
  [[nodiscard]] virtual const_tensor_view final_states() { return {}; }
};

/// A scan over inputs of dense f32 tensors: x, dt, A, B, C, and, optional, D, dt_bias,
/// initial_states (stored dstate innermost; absent = zeros), with dt_softplus on.
struct peer_scan_request {
  scan_arguments arguments;
  int threads = 1;
  /// The operator runs this often in one run(), each time on states of its own: layers of a model,
  /// so that a state is out of the caches when it is used again.
  std::int64_t layers = 1;
  /// The operator runs this often on each layer's state in one run().
  std::int64_t repeats = 1;
  /// New states are copied back to where the old ones lie, as a cache of states needs it. Without
  /// it they stay in the operator's output, of which every layer has its own.
  bool write_back = false;
};

/// A causal convolution over dense f32 tensors with bias and silu. x (b, l, c), weight (c, width),
/// bias (c), states (b, c, width - 1) before the first token.
struct peer_conv1d_request {
  const_tensor_view x, weight, bias, initial_states;
  int threads = 1;
};

class peer {
 public:
  virtual ~peer() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Where it comes from and how it was compiled.
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual std::unique_ptr<peer_run> scan(peer_scan_request const& request) const = 0;
  [[nodiscard]] virtual std::unique_ptr<peer_run> conv1d(
      peer_conv1d_request const& request) const = 0;
};

/// ggml; null where the program was built without it.
[[nodiscard]] peer const* ggml_peer() noexcept;

}  // namespace mambatile::benchmark
