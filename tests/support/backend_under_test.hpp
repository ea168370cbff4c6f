#pragma once

#include <string_view>

namespace mambatile::testing {

/// Name of the backend that this test executable runs the shared cases on.
std::string_view backend_under_test() noexcept;

}  // namespace mambatile::testing
