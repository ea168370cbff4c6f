#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <mambatile/safetensors.hpp>

namespace mambatile::testing {

inline std::string shell_word(std::filesystem::path const& path) {
  return "'" + path.string() + "'";
}

/// One head, one channel, one state: y[t] is what a person can check. The tensors may be changed
/// before they are written.
struct small_scan {
  template <class Element>
  using tensors = std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<Element>>>;
  tensors<float> values = {
      {"x", {{1, 3, 1, 1}, {1, 2, 3}}},        {"dt", {{1, 3, 1}, {1, 1, 1}}},
      {"A", {{1}, {-std::log(2.0F)}}},  // the state halves at each step
      {"B", {{1, 3, 1, 1}, {1, 1, 1}}},        {"C", {{1, 3, 1, 1}, {1, 1, 1}}},
      {"y", {{1, 3, 1, 1}, {1, 2.5F, 4.25F}}}, {"final_states", {{1, 1, 1, 1}, {4.25F}}},
  };
  tensors<std::int32_t> indices;
  std::map<std::string, std::string> metadata;

  void write(std::filesystem::path const& path) const {
    safetensors_writer writer;
    for (auto const& [name, tensor] : values) {
      writer.add(name, safetensors_type::f32, tensor.first,
                 std::as_bytes(std::span(tensor.second)));
    }
    for (auto const& [name, tensor] : indices) {
      writer.add(name, safetensors_type::i32, tensor.first,
                 std::as_bytes(std::span(tensor.second)));
    }
    for (auto const& [key, value] : metadata) writer.set_metadata(key, value);
    writer.write(path);
  }
};

}  // namespace mambatile::testing
