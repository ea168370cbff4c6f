#include "support/backend_under_test.hpp"

namespace mambatile::testing {

std::string_view backend_under_test() noexcept { return MAMBATILE_TEST_BACKEND; }

}  // namespace mambatile::testing
