#pragma once

#include <cstdint>

#include <mambatile/dtype.hpp>

#include "kernel_tensors.hpp"

// What the kernel of state_update is launched with. Plain data, readable by the host compiler and
// by nvcc.

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// One end of the states of a call: (row, head, p, n) or, per token, (row, token, head, p, n); with
/// slots, `row` is a slot and there is no token axis.
struct state_end_tensor {
  state_tensor states;
  std::int64_t token = 0;    ///< stride over the tokens of a row
  std::int64_t limit = 0;    ///< slots of the pool
  std::int64_t columns = 1;  ///< per token: states per row
  small_tensor slots;
  bool per_token = false;
};

/// One call of state_update.
struct state_update_call {
  std::int64_t batch = 0;
  std::int64_t tokens = 1;
  int heads = 0;
  int group_heads = 1;  ///< heads that share a group
  int headdim = 0;
  int dstate = 0;
  dtype io = dtype::f32;
  token_tensor x, z, B, C, out, dt;
  dtype dt_type = dtype::f32;
  small_tensor A, D, dt_bias;
  bool D_per_channel = false;
  bool softplus = false;
  float delta_low = 0;
  float delta_high = 0;
  dtype state = dtype::f32;
  state_end_tensor source, target;
  bool vector = false;  ///< states, B and C: four neighbours along n can be accessed at once
  small_tensor num_accepted;
  int of_first = 1;  ///< tokens that the first state of a row stands behind
  bool skip_padding = false;
  bool stochastic = false;
  std::uint64_t rounding_seed = 0;
  small_tensor row_ids;  ///< absent: the row's number
  int* status = nullptr;
};

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
