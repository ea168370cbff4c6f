#include <array>
#include <atomic>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/backend.hpp>
#include <mambatile/errors.hpp>

#include "backend_implementation.hpp"

// The one list of backends. Explicit, because self-registering statics vanish from static
// libraries.

namespace mambatile {
inline namespace v0 {
namespace {

std::atomic<bool> kokkos_is_the_hosts{false};

}  // namespace

void use_host_kokkos() noexcept { kokkos_is_the_hosts = true; }

bool detail::host_owns_kokkos() noexcept { return kokkos_is_the_hosts; }

std::span<backend const* const> compiled_backends() noexcept {
#if MAMBATILE_HAS_CUDA
  static backend const cuda(detail::cuda_backend());
#endif
#if MAMBATILE_HAS_KOKKOS
  static backend const kokkos(detail::kokkos_backend());
#endif
  static backend const reference(detail::reference_backend());
  static std::array const all = {
#if MAMBATILE_HAS_CUDA
    &cuda,
#endif
#if MAMBATILE_HAS_KOKKOS
    &kokkos,
#endif
    &reference,
  };
  return all;
}

backend const& find_backend(std::string_view name) {
  std::string known;
  for (auto const* candidate : compiled_backends()) {
    if (candidate->name() == name) return *candidate;
    known += known.empty() ? "" : ", ";
    known += candidate->name();
  }
  throw backend_unavailable(
      fmt::format("find_backend: no backend \"{}\" in this build; it has: {}", name, known));
}

backend const& find_backend(device_kind kind) {
  std::string reasons;
  for (auto const* candidate : compiled_backends()) {
    if (candidate->kind() != kind) continue;
    auto const available = candidate->is_available();
    if (available) return *candidate;
    reasons += fmt::format("; {}: {}", candidate->name(), available.reason);
  }
  throw backend_unavailable(fmt::format("find_backend: no backend for {} devices in this build{}",
                                        kind == device_kind::host ? "host" : "cuda", reasons));
}

backend const& default_backend() {
  if (char const* named = std::getenv("MAMBATILE_BACKEND"); named != nullptr && *named != '\0') {
    return find_backend(std::string_view(named));
  }
  constexpr std::string_view configured = MAMBATILE_DEFAULT_BACKEND;
  if (!configured.empty()) return find_backend(configured);
  return find_backend(device_kind::host);
}

}  // namespace v0
}  // namespace mambatile
