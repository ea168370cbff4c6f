#include "model/text_file.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include <mambatile/errors.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

// The index of a checkpoint with a thousand shards stays well below.
constexpr std::uintmax_t largest_text = std::uintmax_t{64} << 20U;

}  // namespace

std::string read_text_file(std::filesystem::path const& path) {
  std::error_code problem;
  auto const size = std::filesystem::file_size(path, problem);
  if (problem) {
    throw file_error(fmt::format("{}: cannot be read: {}", path.string(), problem.message()));
  }
  if (size > largest_text) {
    throw file_error(fmt::format("{}: has {} bytes; such a file has at most {}", path.string(),
                                 size, largest_text));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file || file.gcount() != static_cast<std::streamsize>(text.size())) {
    throw file_error(fmt::format("{}: cannot be read", path.string()));
  }
  return text;
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
