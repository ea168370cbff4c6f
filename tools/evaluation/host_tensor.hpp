#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include <mambatile/tensor_view.hpp>

namespace mambatile::evaluation {

/// A packed row-major tensor in host memory of its own, aligned to 64 bytes,
/// uninitialised. An empty shape is an absent tensor. Throws error where all such tensors together
/// would need more memory than the machine has.
class host_tensor {
 public:
  host_tensor() = default;
  host_tensor(dtype type, std::span<std::int64_t const> shape);
  host_tensor(dtype type, std::initializer_list<std::int64_t> shape)
      : host_tensor(type, std::span(shape.begin(), shape.size())) {}

  [[nodiscard]] tensor_view const& view() noexcept { return view_; }
  [[nodiscard]] const_tensor_view view() const noexcept { return view_; }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(view_.size()) * size_of(view_.type);
  }
  template <class Element>
  [[nodiscard]] std::span<Element> elements() noexcept {
    return {static_cast<Element*>(view_.data), static_cast<std::size_t>(view_.size())};
  }

 private:
  struct release {
    std::int64_t bytes;
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte, release> memory_;
  tensor_view view_;
};

}  // namespace mambatile::evaluation
