#pragma once

#include <cstdint>

#include <mambatile/scan.hpp>

#include "evaluation/host_tensor.hpp"
#include "evaluation/scan_shapes.hpp"

// Made-up inputs that are distributed as a trained model's: A = -uniform(1, 16), steps delta
// log-uniform in [1e-3, 1e-1] reached through dt_bias and softplus, x, B, C about 0.5 N(0, 1),
// z N(0, 1), D and the initial states N(0, 1).

namespace mambatile::evaluation {

struct scan_inputs_request {
  scan_shape shape;
  std::int64_t batch = 1;
  std::int64_t seqlen = 0;
  dtype io = dtype::f32;
  dtype state = dtype::f32;
  state_layout layout = state_layout::dstate_innermost;
  bool with_z = false;
  bool with_initial_states = true;
  std::uint64_t seed = 1;
};

struct scan_inputs {
  explicit scan_inputs(scan_inputs_request const& request);

  host_tensor x, dt, A, B, C, D, z, dt_bias, initial_states;
  /// Views of the tensors above; outputs are absent.
  scan_arguments arguments;
  /// dt_softplus is on.
  scan_options options;
};

}  // namespace mambatile::evaluation
