#pragma once

#include <algorithm>
#include <cstdint>

// How work is spread over the shares of a call.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// The part of the whole that a share gets, in units of work.
struct work_range {
  std::int64_t begin;
  std::int64_t end;
};
[[nodiscard]] constexpr work_range range_of_share(std::int64_t total, int shares,
                                                  int share) noexcept {
  std::int64_t const each = total / shares;
  std::int64_t const rest = total % shares;
  auto const start = [&](std::int64_t which) { return each * which + std::min(which, rest); };
  return {start(share), start(share + 1)};
}

/// As many shares as there are threads, but none with less than `least` of the work.
[[nodiscard]] constexpr int useful_shares(std::int64_t work, int threads,
                                          std::int64_t least) noexcept {
  return static_cast<int>(std::clamp<std::int64_t>(work / least, 1, threads));
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
