#pragma once

#include <cstddef>

#include <mambatile/plan.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {

/// Pieces of a workspace start at multiples of its alignment.
[[nodiscard]] constexpr std::size_t round_to_alignment(std::size_t bytes) noexcept {
  return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

/// Books pieces one after the other when planning; the offsets are good for every call.
class workspace_layout {
 public:
  /// Offset of a new piece.
  [[nodiscard]] constexpr std::size_t book(std::size_t bytes) noexcept {
    auto const offset = bytes_;
    bytes_ += round_to_alignment(bytes);
    return offset;
  }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// The piece at an offset that was booked.
[[nodiscard]] inline void* piece_at(workspace_view workspace, std::size_t offset) noexcept {
  return workspace.data == nullptr ? nullptr : static_cast<char*>(workspace.data) + offset;
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
