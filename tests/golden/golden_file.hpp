#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <mambatile/safetensors.hpp>

#include "evaluation/host_tensor.hpp"

namespace mambatile::testing {

/// All files of one folder of golden data, sorted by name.
[[nodiscard]] std::vector<std::filesystem::path> golden_files(std::string const& folder);

/// A file of golden data: tensors in the type that is asked for, options as text.
class golden_file {
 public:
  explicit golden_file(std::filesystem::path const& path) : file_(path) {}

  /// Absent where the file has none of that name.
  [[nodiscard]] evaluation::host_tensor tensor(std::string const& name, dtype type) const;
  /// Empty where the file does not say.
  [[nodiscard]] std::string text(std::string const& name) const;

 private:
  safetensors_file file_;
};

}  // namespace mambatile::testing
