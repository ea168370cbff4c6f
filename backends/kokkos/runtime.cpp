#include "runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>

#include <Kokkos_Core.hpp>

#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

#include <mambatile/errors.hpp>

#include "backend_implementation.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

using execution_space = Kokkos::DefaultHostExecutionSpace;

// A launch from inside a parallel region would wait for the launch it is part of. Of Kokkos'
// Threads backend this cannot be asked: its in_parallel() is deprecated, and gone from builds
// without deprecated code.
bool inside_parallel_region() {
#ifdef KOKKOS_ENABLE_OPENMP
  return omp_in_parallel() != 0;
#else
  return false;
#endif
}

void finalize_at_exit() {
  if (Kokkos::is_initialized() && !Kokkos::is_finalized()) Kokkos::finalize();
}

}  // namespace

support runtime_support() {
  if (Kokkos::is_finalized()) {
    return {false, "Kokkos has been finalised in this process and cannot be started again"};
  }
  if (Kokkos::is_initialized()) return {true, {}};
  if (detail::host_owns_kokkos()) {
    return {false,
            "Kokkos is not initialised, and use_host_kokkos() left that to the host program"};
  }
  if (inside_parallel_region()) {
    return {false, "Kokkos is not initialised, and it cannot be inside a parallel region"};
  }
  return {true, {}};
}

void start_runtime() {
  static std::mutex starting;
  std::lock_guard const lock(starting);
  if (auto available = runtime_support(); !available) throw backend_unavailable(available.reason);
  if (Kokkos::is_initialized()) return;
  // The thread count is left to the runtime, which knows OMP_NUM_THREADS and the affinity mask:
  // later plans may want more threads than the first one.
  Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
  std::atexit(finalize_at_exit);
}

int runtime_threads() {
  return Kokkos::is_initialized() && !Kokkos::is_finalized() ? execution_space().concurrency() : 0;
}

int plan_threads(int wanted) {
  int const available = std::max(1, runtime_threads());
  return wanted == 0 ? available : std::min(wanted, available);
}

char const* runtime_name() noexcept { return execution_space::name(); }

void for_each_share(int shares, void (*body)(void const* context, int share), void const* context) {
  if (!Kokkos::is_initialized() || Kokkos::is_finalized()) {
    throw backend_unavailable("Kokkos has been finalised since the plan was made");
  }
  if (shares <= 1 || inside_parallel_region()) {
    for (int share = 0; share < shares; ++share) body(context, share);
    return;
  }
  using policy = Kokkos::RangePolicy<execution_space, Kokkos::Schedule<Kokkos::Static>,
                                     Kokkos::IndexType<int>>;
  Kokkos::parallel_for("mambatile", policy(0, shares, Kokkos::ChunkSize(1)),
                       [=](int share) { body(context, share); });
  execution_space().fence("mambatile");
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
