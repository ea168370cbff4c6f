#include "support/tested_backend.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include <catch2/catch_test_macros.hpp>

#include "support/backend_under_test.hpp"

namespace mambatile::testing {
namespace {

bool must_run() {
  char const* const required = std::getenv("MAMBATILE_REQUIRE_BACKEND");
  return required != nullptr && std::string_view(required) == "1";
}

}  // namespace

backend const& tested_backend() {
  auto const& tested = find_backend(backend_under_test());
  if (auto const available = tested.is_available(); !available) {
    if (must_run()) {
      FAIL("MAMBATILE_REQUIRE_BACKEND=1, but " << tested.name()
                                               << " cannot run: " << available.reason);
    }
    SKIP(tested.name() << " cannot run: " << available.reason);
  }
  return tested;
}

device tested_device() { return {tested_backend().kind(), 0}; }

bool is_host_backend() { return tested_backend().kind() == device_kind::host; }

void skip_unless_supported(support const& answer) {
  if (!answer) SKIP(answer.reason);
}

std::string detail::threw_nothing() {
  FAIL_CHECK("no exception was thrown");
  return {};
}

std::string detail::threw_other(char const* what) {
  FAIL_CHECK("an exception of another type was thrown: " << what);
  return {};
}

}  // namespace mambatile::testing
