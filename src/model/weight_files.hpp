#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <mambatile/safetensors.hpp>
#include <mambatile/tensor_view.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {

/// The weight files of a checkpoint directory: one model.safetensors, or the shards named by
/// model.safetensors.index.json. Remembers which tensors were asked for.
class weight_files {
 public:
  explicit weight_files(std::filesystem::path const& directory);

  [[nodiscard]] bool has(std::string const& tensor) const;
  /// A floating-point tensor of this shape, as stored. Axes of extent 1 that the file has in
  /// between do not count: conv weights are stored (channels, 1, width). Copied only where its
  /// address in the file is not aligned to its type.
  [[nodiscard]] const_tensor_view weight(std::string const& tensor,
                                         std::initializer_list<std::int64_t> shape);
  /// The same as f32; `transform` is applied to each element.
  [[nodiscard]] const_tensor_view parameter(std::string const& tensor,
                                            std::initializer_list<std::int64_t> shape,
                                            float (*transform)(float));
  /// Tensors that exist but were never asked for.
  [[nodiscard]] std::vector<std::string> unused() const;
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  void open_single(std::filesystem::path const& path);
  void open_shards(std::filesystem::path const& index);
  [[nodiscard]] safetensors_tensor const& checked(std::string const& tensor,
                                                  std::initializer_list<std::int64_t> shape);
  [[nodiscard]] float* own_floats(std::int64_t count);

  std::deque<safetensors_file> files_;
  std::map<std::string, safetensors_file const*, std::less<>> file_of_;
  std::set<std::string, std::less<>> used_;
  std::deque<std::vector<float>> owned_;
  std::filesystem::path directory_;
  std::int64_t bytes_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
