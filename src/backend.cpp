#include <mambatile/backend.hpp>

#include <bit>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <mambatile/errors.hpp>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {

backend::backend(detail::backend_implementation const& implementation) noexcept
    : implementation_(&implementation) {}

std::string_view backend::name() const noexcept { return implementation_->name(); }
device_kind backend::kind() const noexcept { return implementation_->kind(); }
support backend::is_available() const { return implementation_->is_available(); }
std::string backend::capabilities() const { return implementation_->capabilities(); }

int backend::device_count() const { return is_available() ? implementation_->device_count() : 0; }

state_layout backend::preferred_state_layout() const noexcept {
  return implementation_->preferred_state_layout();
}

buffer backend::allocate(device where, std::size_t bytes, std::size_t alignment) const {
  if (auto available = is_available(); !available) throw backend_unavailable(available.reason);
  if (where.kind != kind() || where.index < 0 || where.index >= device_count()) {
    throw invalid_argument(
        fmt::format("allocate: the {} backend has no device {}", name(), to_string(where)));
  }
  if (!std::has_single_bit(alignment)) {
    throw invalid_argument(
        fmt::format("allocate: alignment = {}, but it must be a power of two", alignment));
  }
  buffer result;
  result.where_ = where;
  if (bytes == 0) return result;
  result.data_ = implementation_->allocate(where, bytes, alignment);
  if (result.data_ == nullptr) {
    throw backend_failure(
        fmt::format("allocate: {} bytes on {} could not be had", bytes, to_string(where)));
  }
  result.owner_ = implementation_;
  result.bytes_ = bytes;
  result.alignment_ = alignment;
  return result;
}

void backend::copy_to_device(void* target, void const* host_source, std::size_t bytes,
                             queue on) const {
  implementation_->copy_to_device(target, host_source, bytes, on);
}

void backend::copy_to_host(void* host_target, void const* source, std::size_t bytes,
                           queue on) const {
  implementation_->copy_to_host(host_target, source, bytes, on);
}

void backend::synchronize(queue on) const { implementation_->synchronize(on); }

buffer::buffer(buffer&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      alignment_(other.alignment_),
      where_(other.where_) {}

buffer& buffer::operator=(buffer&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(alignment_, other.alignment_);
  std::swap(where_, other.where_);
  return *this;
}

buffer::~buffer() {
  if (owner_ != nullptr) owner_->deallocate(where_, data_, alignment_);
}

}  // namespace v0
}  // namespace mambatile
