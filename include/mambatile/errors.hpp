#pragma once

#include <stdexcept>
#include <string>

#include <mambatile/export.hpp>

/// @file
/// Exceptions. A message names the operator, the tensor or field, what it got and the rule that
/// was broken. The library never prints and never aborts.

namespace mambatile {
inline namespace v0 {

/// Base of everything the library throws on its own account.
class MAMBATILE_EXPORT error : public std::runtime_error {
 public:
  explicit error(std::string const& message);
  error(error const&) = default;
  error& operator=(error const&) = default;
  ~error() override;
};

/// An argument breaks a rule: rank, shape, type, stride, null data, overlap, value.
class MAMBATILE_EXPORT invalid_argument : public error {
 public:
  using error::error;
  ~invalid_argument() override;
};

/// A well-formed request that this backend or device does not serve; the message says why.
class MAMBATILE_EXPORT unsupported : public error {
 public:
  using error::error;
  ~unsupported() override;
};

/// The backend is not compiled in, or cannot run on this machine.
class MAMBATILE_EXPORT backend_unavailable : public error {
 public:
  using error::error;
  ~backend_unavailable() override;
};

/// The backend failed at run time (a device error, memory that could not be had).
class MAMBATILE_EXPORT backend_failure : public error {
 public:
  using error::error;
  ~backend_failure() override;
};

/// A file cannot be read, is damaged or holds something else than expected; the message names the
/// file and the tensor or byte.
class MAMBATILE_EXPORT file_error : public error {
 public:
  using error::error;
  ~file_error() override;
};

}  // namespace v0
}  // namespace mambatile
