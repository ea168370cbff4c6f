#include "support/guarded_memory.hpp"

#include <fmt/format.h>

#include "support/strided.hpp"
#include "support/tested_backend.hpp"

namespace mambatile::testing {

guarded_memory::guarded_memory(std::size_t bytes)
    : bytes_(bytes),
      image_(bytes + 2 * guard, std::byte{0xff}),
      may_change_(bytes, false),
      device_(tested_backend().allocate(tested_device(), bytes + 2 * guard)) {}

void* guarded_memory::data() const noexcept {
  return static_cast<std::byte*>(device_.data()) + guard;
}

void guarded_memory::upload() {
  queue const on{.where = tested_device()};
  tested_backend().copy_to_device(device_.data(), image_.data(), image_.size(), on);
  tested_backend().synchronize(on);
}

void guarded_memory::download() {
  queue const on{.where = tested_device()};
  result_.resize(image_.size());
  tested_backend().copy_to_host(result_.data(), device_.data(), result_.size(), on);
  tested_backend().synchronize(on);
}

void guarded_memory::allow(tensor_view const& view) {
  auto const base = static_cast<std::byte const*>(view.data) - static_cast<std::byte*>(data());
  auto const element = static_cast<std::int64_t>(size_of(view.type));
  for_each_offset(view, [&](std::int64_t offset) {
    for (std::int64_t i = 0; i < element; ++i) {
      may_change_[static_cast<std::size_t>(base + offset * element + i)] = true;
    }
  });
}

void guarded_memory::allow_all() { may_change_.assign(bytes_, true); }

std::string guarded_memory::stray_write() const {
  for (std::size_t at = 0; at < image_.size(); ++at) {
    if (image_[at] == result_[at]) continue;
    bool const inside = at >= guard && at < guard + bytes_;
    if (inside && may_change_[at - guard]) continue;
    return fmt::format("byte {} of {} changed",
                       static_cast<std::int64_t>(at) - static_cast<std::int64_t>(guard), bytes_);
  }
  return {};
}

}  // namespace mambatile::testing
