#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <mambatile/safetensors.hpp>

#include "evaluation/random_checkpoint.hpp"

namespace mambatile::testing {

/// Few numbers, no two sizes alike.
inline constexpr evaluation::checkpoint_shape small_shape = {"small", 12, 2, 6, 5, 2, 7, 3, 17};

/// A checkpoint of one file, in memory, to be changed and written.
struct small_checkpoint {
  struct tensor {
    safetensors_type type;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
  };
  nlohmann::ordered_json config;
  std::map<std::string, tensor> tensors;

  /// Random weights of small_shape.
  static small_checkpoint make();
  void write(std::filesystem::path const& folder) const;
};

/// The text of a file.
[[nodiscard]] std::string text_of(std::filesystem::path const& path);
void write_text(std::filesystem::path const& path, std::string const& text);

/// The message of the file_error that `action` throws; "" where it throws none.
[[nodiscard]] std::string file_error_of(std::function<void()> const& action);

}  // namespace mambatile::testing
