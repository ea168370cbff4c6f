#pragma once

#include <filesystem>
#include <string>

namespace mambatile {
inline namespace v0 {
namespace detail {

/// The whole of a small text file. Throws file_error when it cannot be read or is larger than any
/// configuration or index has reason to be.
[[nodiscard]] std::string read_text_file(std::filesystem::path const& path);

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
