#pragma once

#include <cstdint>

#include <mambatile/scan.hpp>

#include "support/test_tensor.hpp"

namespace mambatile::testing {

/// The call on tokens [begin, begin + count) of every row; states and packing are left alone.
[[nodiscard]] scan_arguments tokens_of(scan_arguments arguments, std::int64_t begin,
                                       std::int64_t count);
/// The call on batch rows [begin, begin + count) alone.
[[nodiscard]] scan_arguments rows_of(scan_arguments arguments, std::int64_t begin,
                                     std::int64_t count);
/// The call on heads [begin, begin + count) alone, with the groups they read.
[[nodiscard]] scan_arguments heads_of(scan_arguments arguments, std::int64_t begin,
                                      std::int64_t count);
/// The problem that fits these arguments exactly, with everything else as in `like`.
[[nodiscard]] scan_problem problem_for(scan_arguments const& arguments, scan_problem const& like);

}  // namespace mambatile::testing
