#include "support/allocation_count.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> count{0};
std::atomic<std::int64_t> total_bytes{0};

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  ++count;
  total_bytes += static_cast<std::int64_t>(bytes);
  bytes = std::max<std::size_t>(bytes, 1);
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(bytes);
  auto const whole = (bytes + alignment - 1) / alignment * alignment;
  return whole < bytes ? nullptr : std::aligned_alloc(alignment, whole);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const data = allocate(bytes, alignment);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

mambatile::testing::allocations mambatile::testing::allocations_so_far() noexcept {
  return {count, total_bytes};
}

// Replacements of the global functions, for the whole executable; the array forms call these.
void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment, std::nothrow_t const&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }
