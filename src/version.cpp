#include <mambatile/version.hpp>

#include <string_view>

#define MAMBATILE_STRINGIFY_(token) #token
#define MAMBATILE_STRINGIFY(token) MAMBATILE_STRINGIFY_(token)

namespace mambatile {
inline namespace v0 {

std::string_view version() noexcept {
  return MAMBATILE_STRINGIFY(MAMBATILE_VERSION_MAJOR) "." MAMBATILE_STRINGIFY(
      MAMBATILE_VERSION_MINOR) "." MAMBATILE_STRINGIFY(MAMBATILE_VERSION_PATCH);
}

}  // namespace v0
}  // namespace mambatile
