#pragma once

#include <string>
#include <utility>

#include <mambatile/backend.hpp>

namespace mambatile::testing {

/// The backend that this executable runs the shared cases on. Where it cannot run, the running case
/// is skipped with the reason, or fails when MAMBATILE_REQUIRE_BACKEND=1.
[[nodiscard]] backend const& tested_backend();

/// Its device that the cases use.
[[nodiscard]] device tested_device();

/// True when the backend's tensors are in host memory.
[[nodiscard]] bool is_host_backend();

/// For cases that a backend may leave out: skips the running case, saying why.
void skip_unless_supported(support const& answer);

/// What(), of the Exception that the action throws; fails the running case when it throws nothing
/// or something else.
template <class Exception, class Action>
[[nodiscard]] std::string message_of(Action&& action);

namespace detail {
[[nodiscard]] std::string threw_nothing();
[[nodiscard]] std::string threw_other(char const* what);
}  // namespace detail

template <class Exception, class Action>
std::string message_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (Exception const& expected) {
    return expected.what();
  } catch (std::exception const& other) {
    return detail::threw_other(other.what());
  }
  return detail::threw_nothing();
}

}  // namespace mambatile::testing
