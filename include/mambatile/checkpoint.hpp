#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mambatile/export.hpp>
#include <mambatile/tensor_view.hpp>

/// @file
/// Mamba-2 checkpoints: a directory with config.json and safetensors weights, in the naming of
/// transformers (`model_type` "mamba2") or of the original state-spaces code.

namespace mambatile {
inline namespace v0 {

/// The architecture of a Mamba-2 language model.
struct model_config {
  std::int64_t vocab_size = 0;    ///< tokens that exist; logits have this many columns
  std::int64_t padded_vocab = 0;  ///< rows of the embedding, at least vocab_size
  std::int64_t hidden_size = 0;
  std::int64_t num_layers = 0;
  std::int64_t nheads = 0;
  std::int64_t headdim = 0;
  std::int64_t ngroups = 1;
  std::int64_t dstate = 0;
  std::int64_t conv_width = 0;

  bool projection_bias = false;
  bool conv_bias = true;
  bool D_per_channel = false;        ///< D has shape (nheads, headdim)
  bool gated_norm = true;            ///< a norm between scan and output projection
  bool norm_before_gate = false;     ///< order of that norm and the gate
  std::int64_t norm_group_size = 0;  ///< channels per group of that norm
  bool tied_head = true;             ///< the head is the embedding
  bool residual_in_f32 = true;       ///< the residual stream is kept in f32
  float norm_eps = 1e-5F;
  std::array<float, 2> dt_limit = {0.0F, std::numeric_limits<float>::infinity()};
  int chunk_size = 0;  ///< the checkpoint's hint for the scan; 0 = none

  std::vector<std::int32_t> end_of_sequence;  ///< ids that end generation; may be empty
  std::optional<std::int32_t> begin_of_sequence;

  /// Channels between the projections, nheads * headdim.
  [[nodiscard]] std::int64_t inner_size() const noexcept { return nheads * headdim; }
  /// Channels of the convolution: x, B and C.
  [[nodiscard]] std::int64_t conv_channels() const noexcept {
    return inner_size() + 2 * ngroups * dstate;
  }
  /// Rows of the input projection: z, x, B, C and dt.
  [[nodiscard]] std::int64_t projection_rows() const noexcept {
    return inner_size() + conv_channels() + nheads;
  }

  friend bool operator==(model_config const&, model_config const&) = default;
};

/// Reads the architecture from the text of a config.json; `name` is used in messages.
///
/// Keys read from a transformers config: model_type, vocab_size, hidden_size, num_hidden_layers,
/// num_heads, head_dim, n_groups, state_size, conv_kernel, use_bias, use_conv_bias, hidden_act,
/// rms_norm, layer_norm_epsilon, time_step_limit, residual_in_fp32, tie_word_embeddings,
/// chunk_size, bos_token_id, eos_token_id. From a state-spaces config: d_model, n_layer,
/// d_intermediate, attn_layer_idx, vocab_size, pad_vocab_size_multiple, rms_norm,
/// residual_in_fp32, tie_embeddings, and in ssm_cfg: layer, d_state, d_conv, expand, headdim,
/// d_ssm, ngroups, D_has_hdim, rmsnorm, norm_before_gate, dt_limit, bias, conv_bias, chunk_size,
/// activation. A value that this library cannot honour is refused. time_step_min and its kin shape
/// initialisation only and are not read. Infinity may be written bare, as a string, or as
/// {"__float__": "Infinity"}; NaN is refused.
/// @throws file_error naming the file, the key, its value and the rule.
[[nodiscard]] MAMBATILE_EXPORT model_config parse_model_config(std::string_view text,
                                                               std::string const& name);

/// Weights of one layer, as stored: f32, bf16 or f16. Shapes use the names of model_config.
struct layer_weights {
  const_tensor_view input_norm;         ///< (hidden_size)
  const_tensor_view input_projection;   ///< (projection_rows, hidden_size): z, x, B, C, dt
  const_tensor_view input_bias;         ///< (projection_rows); optional
  const_tensor_view conv_weight;        ///< (conv_channels, conv_width)
  const_tensor_view conv_bias;          ///< (conv_channels); optional
  const_tensor_view dt_bias;            ///< (nheads), f32
  const_tensor_view A;                  ///< (nheads), f32: -exp(A_log), formed in f32
  const_tensor_view D;                  ///< (nheads) or (nheads, headdim), f32
  const_tensor_view gated_norm;         ///< (inner_size); optional
  const_tensor_view output_projection;  ///< (hidden_size, inner_size)
  const_tensor_view output_bias;        ///< (hidden_size); optional
};

/// All weights of a model.
struct model_weights {
  const_tensor_view embedding;  ///< (padded_vocab, hidden_size)
  std::vector<layer_weights> layers;
  const_tensor_view final_norm;  ///< (hidden_size)
  const_tensor_view head;        ///< (padded_vocab, hidden_size); the embedding where tied
};

/// Receives remarks about a checkpoint that loads all the same, such as a tensor nobody uses.
using checkpoint_remark = std::function<void(std::string_view)>;

/// A checkpoint opened for use: memory-mapped, nothing read that is not used. Copies share the
/// mapping; the weights' views are valid as long as one of them lives.
class MAMBATILE_EXPORT checkpoint {
 public:
  /// Opens DIRECTORY/config.json with model.safetensors or model.safetensors.index.json.
  /// @throws file_error for anything missing, misshaped or unknown, naming it.
  [[nodiscard]] static checkpoint open(std::filesystem::path const& directory,
                                       checkpoint_remark const& remark = {});

  [[nodiscard]] model_config const& config() const noexcept;
  [[nodiscard]] model_weights const& weights() const noexcept;
  /// Type of the projection weights, which are most of the file.
  [[nodiscard]] dtype weight_type() const noexcept;
  /// Bytes of all weight files.
  [[nodiscard]] std::int64_t file_bytes() const noexcept;

 private:
  struct storage;
  explicit checkpoint(std::shared_ptr<storage const> shared) noexcept;
  std::shared_ptr<storage const> storage_;
};

}  // namespace v0
}  // namespace mambatile
