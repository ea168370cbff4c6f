#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <mambatile/backend.hpp>
#include <mambatile/checkpoint.hpp>
#include <mambatile/dtype.hpp>
#include <mambatile/export.hpp>

/// @file
/// Whole Mamba-2 language models: embedding, residual blocks of RMSNorm and mixer, final norm,
/// head.

namespace mambatile {
inline namespace v0 {

/// How a model runs.
struct model_options {
  /// Activations between the projections. The residual stream is f32 where the checkpoint says so.
  dtype io = dtype::f32;
  /// SSM states. 16 bits halve the memory and lose quality over long runs.
  dtype state = dtype::f32;
  /// Tokens of one pass through the layers; longer input is cut. Bounds the workspace.
  std::int64_t max_tokens = 512;
  /// Sequences of one pass.
  std::int64_t max_sequences = 64;
  int threads = 0;  ///< host: most threads; 0 = all of the backend's
};

/// Which tokens' logits a call returns.
enum class logits_of : std::uint8_t {
  last_tokens,  ///< one row for each sequence of the call that has tokens
  all_tokens,   ///< one row for each token
};

/// The next tokens of one sequence.
struct sequence_tokens {
  std::int64_t slot = 0;              ///< of the cache; at most once in a call
  std::span<std::int32_t const> ids;  ///< may be empty
};

class model;

/// The states of a number of sequences, one slot each. Owned by the caller; used by one call at a
/// time.
class MAMBATILE_EXPORT model_cache {
 public:
  /// All slots start empty.
  model_cache(model const& of, std::int64_t slots);
  model_cache(model_cache&&) noexcept;
  model_cache& operator=(model_cache&&) noexcept;
  ~model_cache();

  [[nodiscard]] std::int64_t slots() const noexcept;
  /// Tokens that the sequence in a slot has seen.
  [[nodiscard]] std::int64_t tokens_seen(std::int64_t slot) const;
  /// Empties a slot: the next tokens start a new sequence. Its memory is not read before.
  void reset(std::int64_t slot);
  /// Copies one slot's state to another.
  void copy(std::int64_t from, std::int64_t to);
  /// Bytes of all states.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Writes a slot's state as safetensors, with the architecture it belongs to.
  /// @throws file_error
  void save(std::int64_t slot, std::filesystem::path const& path) const;
  /// Reads what save wrote into a slot.
  /// @throws file_error where the file is damaged, or its version, architecture, types or shapes
  ///   are not this model's; the slot is then unchanged.
  void load(std::int64_t slot, std::filesystem::path const& path);

 private:
  friend class model;
  struct storage;
  std::unique_ptr<storage> storage_;
};

/// A model on a backend. On the host the checkpoint's mapped weights are used where they lie; only
/// parameters that are small against the projections are copied, as f32.
class MAMBATILE_EXPORT model {
 public:
  model(checkpoint from, backend const& served_by, model_options const& options = {});
  model(checkpoint from, backend const& served_by, device where, model_options const& options);
  model(model&&) noexcept;
  model& operator=(model&&) noexcept;
  ~model();

  [[nodiscard]] model_config const& config() const noexcept;
  [[nodiscard]] model_options const& options() const noexcept;
  [[nodiscard]] backend const& served_by() const noexcept;
  [[nodiscard]] device where() const noexcept;
  /// Bytes of states that one sequence needs.
  [[nodiscard]] std::size_t bytes_per_sequence() const noexcept;
  /// Bytes of workspace and activations, whatever the length of the input.
  [[nodiscard]] std::size_t workspace_bytes() const noexcept;
  /// What runs where, one plan a line.
  [[nodiscard]] std::string description() const;

  /// Rows that forward returns for this batch.
  [[nodiscard]] static std::int64_t logits_rows(std::span<sequence_tokens const> batch,
                                                logits_of wanted) noexcept;

  /// Runs the next tokens of any mix of sequences, new ones and continued ones, one token or many,
  /// and leaves their states in the cache. Rows of logits (vocab_size columns, f32, on the host)
  /// are in the batch's order. Not for concurrent use of one model object.
  /// @throws invalid_argument for an id outside the vocabulary, a slot that does not exist or is
  ///   named twice, or logits of the wrong size; nothing is written then.
  void forward(model_cache& cache, std::span<sequence_tokens const> batch, logits_of wanted,
               std::span<float> logits);

 private:
  friend class model_cache;
  struct storage;
  std::unique_ptr<storage> storage_;
};

}  // namespace v0
}  // namespace mambatile
