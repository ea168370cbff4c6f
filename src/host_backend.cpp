#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {

void* host_backend_implementation::allocate(device /*where*/, std::size_t bytes,
                                            std::size_t alignment) const {
  // Rounding up to the alignment must not wrap around.
  if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) - alignment) return nullptr;
  return ::operator new (bytes, std::align_val_t{alignment}, std::nothrow);
}

void host_backend_implementation::deallocate(device /*where*/, void* data,
                                             std::size_t alignment) const noexcept {
  ::operator delete (data, std::align_val_t{alignment});
}

void host_backend_implementation::copy_to_device(void* target, void const* source,
                                                 std::size_t bytes, queue const& /*on*/) const {
  if (bytes != 0) std::memcpy(target, source, bytes);
}

void host_backend_implementation::copy_to_host(void* target, void const* source, std::size_t bytes,
                                               queue const& /*on*/) const {
  if (bytes != 0) std::memcpy(target, source, bytes);
}

// Host work is done when execute returns.
void host_backend_implementation::synchronize(queue const& /*on*/) const {}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
