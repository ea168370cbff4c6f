#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mambatile/tensor_view.hpp>

#include "support/guarded_memory.hpp"
#include "support/strided.hpp"

namespace mambatile::testing {

/// How a tensor lies in memory.
enum class arrangement {
  packed,      ///< dense, row-major
  padded,      ///< gaps after every axis, starting at an odd element
  swapped,     ///< as padded, the two outermost axes stored in the other order
  reversed,    ///< as padded, outer axes with negative strides; inputs only
  transposed,  ///< dense, the last two axes stored in the other order (states)
};
[[nodiscard]] char const* to_string(arrangement value) noexcept;

/// A tensor on the tested device in guarded memory, with its image on the host.
class test_tensor {
 public:
  /// Absent.
  test_tensor() = default;
  /// Poisoned with NaN (i32: -1).
  test_tensor(dtype type, std::vector<std::int64_t> const& shape,
              arrangement lies = arrangement::packed);
  /// In memory that other tensors share, with strides in elements, from element `begin` on.
  test_tensor(std::shared_ptr<guarded_memory> memory, dtype type,
              std::vector<std::int64_t> const& shape, std::vector<std::int64_t> const& strides,
              std::int64_t begin);
  /// With the values of a host tensor of the same type.
  [[nodiscard]] static test_tensor copy_of(const_tensor_view const& host);

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(view_); }
  /// On the device.
  [[nodiscard]] tensor_view const& view() const noexcept { return view_; }
  /// The host image, to be read or prepared before upload.
  [[nodiscard]] tensor_view image() const noexcept;
  /// What the last download brought, on the host.
  [[nodiscard]] const_tensor_view result() const noexcept;
  [[nodiscard]] guarded_memory& memory() const noexcept { return *memory_; }

  /// Sets every element of the image to next(), in row-major order, rounded to the type.
  template <class Next>
  test_tensor& fill(Next const& next) {
    auto const to = image();
    for_each_offset(to, [&](std::int64_t offset) { set(to, offset, next()); });
    return *this;
  }
  void upload() const {
    if (memory_) memory_->upload();
  }
  void download() const {
    if (memory_) memory_->download();
  }

  /// Element as a number, and back with one rounding.
  [[nodiscard]] static double get(const_tensor_view const& host, std::int64_t offset) noexcept;
  static void set(tensor_view const& host, std::int64_t offset, double value) noexcept;

 private:
  std::shared_ptr<guarded_memory> memory_;
  tensor_view view_;
};

/// All values of a host view in row-major order.
[[nodiscard]] std::vector<double> values(const_tensor_view const& host);
/// The same as raw bits, for comparisons that must be exact.
[[nodiscard]] std::vector<std::uint32_t> bits(const_tensor_view const& host);

}  // namespace mambatile::testing
