#include <mambatile/errors.hpp>

#include <string>

namespace mambatile {
inline namespace v0 {

error::error(std::string const& message) : std::runtime_error(message) {}

// Out of line, so that each class has one type identity across shared libraries.
error::~error() = default;
invalid_argument::~invalid_argument() = default;
unsupported::~unsupported() = default;
backend_unavailable::~backend_unavailable() = default;
backend_failure::~backend_failure() = default;
file_error::~file_error() = default;

}  // namespace v0
}  // namespace mambatile
