#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include <mambatile/dtype.hpp>

// Checkpoints with random weights, of any size: speed, memory and numbers can be shown without a
// download.

namespace mambatile::evaluation {

/// What decides a checkpoint's size.
struct checkpoint_shape {
  std::string_view name;
  std::int64_t hidden_size = 0;
  std::int64_t num_layers = 0;
  std::int64_t nheads = 0;
  std::int64_t headdim = 64;
  std::int64_t ngroups = 1;
  std::int64_t dstate = 128;
  std::int64_t conv_width = 4;
  std::int64_t vocab_size = 0;
  bool tied_head = true;
};

/// The published models; vocabularies as padded in their files.
inline constexpr std::array<checkpoint_shape, 6> checkpoint_shapes = {{
    {"mamba2-130m", 768, 24, 24, 64, 1, 128, 4, 50288},
    {"mamba2-370m", 1024, 48, 32, 64, 1, 128, 4, 50288},
    {"mamba2-780m", 1536, 48, 48, 64, 1, 128, 4, 50288},
    {"mamba2-1.3b", 2048, 48, 64, 64, 1, 128, 4, 50288},
    {"mamba2-2.7b", 2560, 64, 80, 64, 1, 128, 4, 50288},
    {"codestral-mamba-7b", 4096, 64, 128, 64, 8, 128, 4, 32768, false},
}};

/// How the weights are stored.
struct checkpoint_storage {
  dtype type = dtype::f32;
  std::uint64_t seed = 0;
  /// Files grow no larger, except that each has a whole tensor at least.
  std::int64_t shard_bytes = 5'000'000'000;
};

struct written_checkpoint {
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;  ///< of the tensors
  std::int64_t files = 0;  ///< with tensors
};

/// Told after each piece: bytes so far, bytes in all.
using checkpoint_progress = std::function<void(std::int64_t, std::int64_t)>;

/// Writes config.json and weights in the naming of transformers. Numbers are spread as training
/// starts (projections within 1 / sqrt(inputs), dt log-uniform in [1e-3, 0.1], A in [-16, -1]),
/// except that norms and D vary around 1, so that each weight shows in the result. They depend on
/// seed, tensor and position alone: another type rounds the same ones, other shards cut the same
/// ones. Takes a piece of a tensor of memory. Sizes that the loader refuses, that bytes cannot
/// count, or that transformers could not read are refused before anything is written or removed, as
/// invalid_argument or the file_error of parse_model_config. Throws file_error where writing fails;
/// config.json comes last, so that what was broken off is not taken for a checkpoint.
written_checkpoint write_random_checkpoint(std::filesystem::path const& folder,
                                           checkpoint_shape const& shape,
                                           checkpoint_storage const& storage = {},
                                           checkpoint_progress const& progress = {});

}  // namespace mambatile::evaluation
