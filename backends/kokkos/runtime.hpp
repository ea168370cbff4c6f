#pragma once

#include <type_traits>

#include <mambatile/plan.hpp>

// Kokkos as a guest in somebody else's process, and parallel loops over it. Kokkos' own headers are
// needed only in runtime.cpp.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// Whether Kokkos is running or could be started, and why not. Starts nothing.
[[nodiscard]] support runtime_support();

/// Makes Kokkos run: does nothing when it runs already, else starts it silently and has it
/// finalised at exit.
/// @throws backend_unavailable with runtime_support's reason.
void start_runtime();

/// Threads of the pool; before Kokkos runs, 0.
[[nodiscard]] int runtime_threads();

/// Threads that a plan made for at most `wanted` of them (0 = all) may use. Kokkos runs.
[[nodiscard]] int plan_threads(int wanted);

/// What Kokkos runs on: "OpenMP", "Threads", "Serial".
[[nodiscard]] char const* runtime_name() noexcept;

/// Calls body(0), ..., body(shares - 1), each once, spread over the pool; returns when all are
/// done. At most `shares` threads take part. Inside a parallel region, and for one share, the
/// calling thread does all of it. The body must not throw.
/// @throws backend_unavailable when Kokkos no longer runs, before any call.
void for_each_share(int shares, void (*body)(void const* context, int share), void const* context);

template <class Body>
void for_each_share(int shares, Body const& body) {
  static_assert(std::is_nothrow_invocable_v<Body const&, int>, "mark the body noexcept");
  for_each_share(
      shares, [](void const* context, int share) { (*static_cast<Body const*>(context))(share); },
      &body);
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
