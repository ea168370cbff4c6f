#pragma once

#include <cstdint>

namespace mambatile::testing {

/// How often this process has asked operator new for memory so far.
[[nodiscard]] std::int64_t allocation_count() noexcept;

}  // namespace mambatile::testing
