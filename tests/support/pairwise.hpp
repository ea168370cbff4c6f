#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mambatile::testing {

/// Rows of choices, one value in [0, levels[i]) for each factor i, such that any two values of any
/// two factors meet in some row. Greedy; the same rows every time.
[[nodiscard]] std::vector<std::vector<int>> pairwise_rows(std::span<int const> levels);

}  // namespace mambatile::testing
