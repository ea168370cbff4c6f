#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include <mambatile/backend.hpp>
#include <mambatile/dtype.hpp>
#include <mambatile/export.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/recurrence.hpp>
#include <mambatile/tensor_view.hpp>

/// @file
/// The Mamba-2 block over packed sequences, on any backend:
///
///     [z, x, B, C, dt] = (input_scale * hidden W_in^T + bias) * column_scale
///     [x, B, C] = silu(causal_conv1d([x, B, C]))
///     y = chunk_scan(x, dt, A, B, C, D)             (state_update where each sequence has one
///     token) y = gated_norm ? gated_rms_norm(y, z) : y silu(z) out = y W_out^T + bias
///
/// Source: Dao and Gu, "Transformers are SSMs" (2024), section 7. Prefill in any cut, mixed with
/// decode, gives the one-shot result.

namespace mambatile {
inline namespace v0 {

/// What a mixer depends on. The max_* fields are capacities: one mixer serves every smaller call.
struct mixer_problem {
  std::int64_t max_tokens = 0;     ///< tokens of all sequences of a call
  std::int64_t max_sequences = 0;  ///< sequences of a call
  std::int64_t hidden_size = 0;
  std::int64_t nheads = 0;
  std::int64_t headdim = 0;
  std::int64_t ngroups = 1;
  std::int64_t dstate = 0;
  std::int64_t conv_width = 4;

  dtype hidden = dtype::f32;      ///< hidden (without projections: the io type)
  dtype io = dtype::f32;          ///< everything between the projections
  dtype out = dtype::f32;         ///< out (without projections: the io type)
  dtype projection = dtype::f32;  ///< weights of both projections
  dtype projection_bias = dtype::f32;
  dtype conv = dtype::f32;   ///< conv_weight and conv_bias, f32 or the io type
  dtype norm = dtype::f32;   ///< norm_weight, f32 or the io type
  dtype state = dtype::f32;  ///< ssm_states

  /// Without projections, hidden is the zxBCdt buffer and out what the output projection would
  /// read.
  bool has_projections = true;
  bool has_projection_bias = false;
  bool has_column_scale = false;
  bool has_conv_bias = true;
  skip D = skip::per_head;
  bool gated_norm = true;
  bool norm_before_gate = false;
  std::int64_t norm_group_size = 0;  ///< 0 = one group
  float norm_eps = 1e-5F;
  float input_scale = 1.0F;
  std::array<float, 2> dt_limit = {0.0F, std::numeric_limits<float>::infinity()};
  bool accumulate = false;  ///< add to what out holds; needs the projections

  int chunk_size = 0;  ///< hint for the scan; 0 = the plan chooses
  int threads = 0;     ///< host: most threads a call uses; 0 = all of the backend's

  /// Channels between the projections.
  [[nodiscard]] constexpr std::int64_t inner_size() const noexcept { return nheads * headdim; }
  /// Channels of the convolution: x, B and C.
  [[nodiscard]] constexpr std::int64_t conv_channels() const noexcept {
    return inner_size() + 2 * ngroups * dstate;
  }
  /// Columns of zxBCdt.
  [[nodiscard]] constexpr std::int64_t projection_rows() const noexcept {
    return inner_size() + conv_channels() + nheads;
  }

  friend bool operator==(mixer_problem const&, mixer_problem const&) = default;
};

/// A block's weights; presence of the optional ones must match the problem.
struct mixer_weights {
  const_tensor_view input_projection = {};   ///< (projection_rows, hidden_size): z, x, B, C, dt
  const_tensor_view input_bias = {};         ///< (projection_rows); optional
  const_tensor_view column_scale = {};       ///< (projection_rows), f32; optional
  const_tensor_view conv_weight = {};        ///< (conv_channels, conv_width)
  const_tensor_view conv_bias = {};          ///< (conv_channels); optional
  const_tensor_view dt_bias = {};            ///< (nheads), f32
  const_tensor_view A = {};                  ///< (nheads), f32, negative
  const_tensor_view D = {};                  ///< (nheads) or (nheads, headdim), f32
  const_tensor_view norm_weight = {};        ///< (inner_size); optional
  const_tensor_view output_projection = {};  ///< (hidden_size, inner_size)
  const_tensor_view output_bias = {};        ///< (hidden_size); optional
};

/// The tensors of one call: t tokens of s sequences, one after the other.
struct mixer_arguments {
  const_tensor_view hidden = {};  ///< (t, hidden_size), or zxBCdt (t, projection_rows)
  /// (s + 1), i32: sequence i owns tokens [cu_seqlens[i], cu_seqlens[i + 1]); the last entry is t.
  /// Absent: decode, each token is a sequence of its own.
  const_tensor_view cu_seqlens = {};
  const_tensor_view state_source =
      {};  ///< (s), i32: slot to go on from, -1 = the sequence starts here
  const_tensor_view state_target = {};  ///< (s), i32: slot to leave the state in, -1 = nowhere
  tensor_view conv_states = {};         ///< (slots, conv_channels, conv_width - 1), io type
  tensor_view ssm_states = {};          ///< (slots, nheads, headdim, dstate), state type
  tensor_view out = {};                 ///< (t, hidden_size), or (t, inner_size)
};

/// A planned block. An immutable value, cheap to copy, usable from several threads at once as long
/// as each concurrent call has a workspace, states and outputs of its own.
class MAMBATILE_EXPORT mixer {
 public:
  /// @throws invalid_argument, unsupported as the operators' plans do.
  mixer(backend const& served_by, device where, mixer_problem const& problem);

  [[nodiscard]] mixer_problem const& problem() const noexcept;
  /// Bytes of workspace that execute needs: linear in max_tokens, whatever the sequences.
  [[nodiscard]] std::size_t workspace_bytes() const noexcept;
  /// The plans of the operators, one a line.
  [[nodiscard]] std::string description() const;

  /// @throws invalid_argument, unsupported before anything but the workspace is written.
  void execute(mixer_weights const& weights, mixer_arguments const& arguments,
               workspace_view workspace, queue on) const;

 private:
  struct storage;
  std::shared_ptr<storage const> storage_;
};

}  // namespace v0
}  // namespace mambatile
