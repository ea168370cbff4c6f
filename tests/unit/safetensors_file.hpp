#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace mambatile::testing {

/// The bytes of a safetensors file with this header and this many bytes of data (0, 1, 2, ...).
inline std::vector<std::byte> safetensors_bytes(std::string_view header, std::size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  std::uint64_t const length = header.size();
  for (std::size_t index = 0; index < 8; ++index) {
    bytes[index] = static_cast<std::byte>(length >> (8 * index));
  }
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  for (std::size_t index = 0; index < data_bytes; ++index) {
    bytes[8 + header.size() + index] = static_cast<std::byte>(index);
  }
  return bytes;
}

/// A folder of its own, removed with all it holds.
class temporary_folder {
 public:
  temporary_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "mambatile-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  temporary_folder(temporary_folder const&) = delete;
  temporary_folder& operator=(temporary_folder const&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(std::filesystem::path const& path, std::span<std::byte const> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<char const*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline std::vector<std::byte> read_bytes(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  std::string const text{std::istreambuf_iterator<char>(file), {}};
  auto const* const data = reinterpret_cast<std::byte const*>(text.data());
  return {data, data + text.size()};
}

}  // namespace mambatile::testing
