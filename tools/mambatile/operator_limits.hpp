#pragma once

#include <nlohmann/json.hpp>

#include <mambatile/backend.hpp>

namespace mambatile::program {

/// What the backend serves, operator by operator: {"chunk_scan": {"io": ["f32", ...], ...}, ...},
/// or
/// {"reason": why not}. All of it is asked of the backend's own predicate. Sizes are the largest
/// power of two that it takes, "any" from 2^20 on.
[[nodiscard]] nlohmann::ordered_json operator_limits(backend const& on);

}  // namespace mambatile::program
