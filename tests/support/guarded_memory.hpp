#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <mambatile/backend.hpp>
#include <mambatile/tensor_view.hpp>

namespace mambatile::testing {

/// Memory on the tested device with guard bytes on both sides, and its image on the host. All of it
/// starts as 0xff bytes, which are NaN in every floating-point type.
class guarded_memory {
 public:
  explicit guarded_memory(std::size_t bytes);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// On the device; aligned to workspace_alignment.
  [[nodiscard]] void* data() const noexcept;
  /// Where the memory is prepared on the host.
  [[nodiscard]] void* image() noexcept { return image_.data() + guard; }
  /// What the last download brought.
  [[nodiscard]] void const* result() const noexcept { return result_.data() + guard; }

  /// Image to device.
  void upload();
  /// Device to result.
  void download();

  /// Allows a call to change the elements of a view, given by its offset in bytes from data().
  void allow(tensor_view const& view);
  void allow_all();
  /// After download: where a byte changed that was not allowed to; empty when there is none.
  [[nodiscard]] std::string stray_write() const;
  /// After download: whether nothing changed at all.
  [[nodiscard]] bool is_untouched() const noexcept { return result_ == image_; }

 private:
  static constexpr std::size_t guard = 2 * workspace_alignment;

  std::size_t bytes_;
  std::vector<std::byte> image_;
  std::vector<std::byte> result_;
  std::vector<bool> may_change_;
  buffer device_;
};

}  // namespace mambatile::testing
