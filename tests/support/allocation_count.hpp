#pragma once

#include <cstdint>

namespace mambatile::testing {

/// What this process has asked operator new for so far.
struct allocations {
  std::int64_t count = 0;
  std::int64_t bytes = 0;

  friend bool operator==(allocations const&, allocations const&) = default;
  friend allocations operator-(allocations const& left, allocations const& right) noexcept {
    return {left.count - right.count, left.bytes - right.bytes};
  }
};
[[nodiscard]] allocations allocations_so_far() noexcept;

}  // namespace mambatile::testing
