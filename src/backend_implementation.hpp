#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <mambatile/backend.hpp>
#include <mambatile/conv1d.hpp>
#include <mambatile/errors.hpp>
#include <mambatile/matmul.hpp>
#include <mambatile/norm.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/scan.hpp>
#include <mambatile/state_update.hpp>
#include <mambatile/take_rows.hpp>

// What a backend implements. backends/README.md says what it must and must not do.

namespace mambatile {
inline namespace v0 {
namespace detail {

/// One planned problem. Immutable after construction; execute may run concurrently.
template <class Problem>
class plan_implementation {
 public:
  plan_implementation() = default;
  plan_implementation(plan_implementation const&) = delete;
  plan_implementation& operator=(plan_implementation const&) = delete;
  virtual ~plan_implementation() = default;

  /// Arguments have been checked against the problem; the workspace has workspace_bytes() bytes and
  /// is aligned; `on.threads` has been checked against threads().
  virtual void execute(typename Problem::arguments_type const& arguments, workspace_view workspace,
                       queue const& on) const = 0;

  virtual execution_status status(workspace_view /*workspace*/, queue const& /*on*/) const {
    return {};
  }

  [[nodiscard]] virtual std::size_t workspace_bytes() const noexcept = 0;
  [[nodiscard]] virtual std::string_view description() const noexcept = 0;
  /// Host backends: most threads that execute uses. 0 = the notion does not apply.
  [[nodiscard]] virtual int threads() const noexcept { return 0; }
};

/// What a backend does for one operator; the defaults say that it does not have it.
template <class Problem>
class operator_backend {
 public:
  /// The problem is valid and the device exists.
  [[nodiscard]] virtual support supports(Problem const& /*problem*/, device /*where*/) const {
    return {false, "this backend does not have the operator"};
  }
  /// Called only when supports said yes.
  [[nodiscard]] virtual std::shared_ptr<plan_implementation<Problem> const> plan(
      Problem const& problem, device where) const {
    throw unsupported(supports(problem, where).reason);
  }

 protected:
  ~operator_backend() = default;
};

template <class... Problems>
class operator_backends : public operator_backend<Problems>... {
 public:
  using operator_backend<Problems>::supports...;
  using operator_backend<Problems>::plan...;

 protected:
  ~operator_backends() = default;
};

/// Every operator of the library has its problem in this list.
using all_operators =
    operator_backends<scan_problem, state_update_problem, conv1d_problem, conv1d_update_problem,
                      gated_rms_norm_problem, matmul_problem, take_rows_problem>;

class backend_implementation : public all_operators {
 public:
  backend_implementation() = default;
  backend_implementation(backend_implementation const&) = delete;
  backend_implementation& operator=(backend_implementation const&) = delete;
  virtual ~backend_implementation() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual device_kind kind() const noexcept = 0;
  [[nodiscard]] virtual support is_available() const = 0;
  /// Asked only when available.
  [[nodiscard]] virtual int device_count() const = 0;
  [[nodiscard]] virtual state_layout preferred_state_layout() const noexcept = 0;
  [[nodiscard]] virtual std::string capabilities() const = 0;

  /// Null when the memory cannot be had.
  [[nodiscard]] virtual void* allocate(device where, std::size_t bytes,
                                       std::size_t alignment) const = 0;
  virtual void deallocate(device where, void* data, std::size_t alignment) const noexcept = 0;
  virtual void copy_to_device(void* target, void const* source, std::size_t bytes,
                              queue const& on) const = 0;
  virtual void copy_to_host(void* target, void const* source, std::size_t bytes,
                            queue const& on) const = 0;
  virtual void synchronize(queue const& on) const = 0;
};

/// Memory and copies of the backends that compute on the host.
class host_backend_implementation : public backend_implementation {
 public:
  [[nodiscard]] device_kind kind() const noexcept final { return device_kind::host; }
  [[nodiscard]] int device_count() const override { return 1; }
  [[nodiscard]] void* allocate(device where, std::size_t bytes, std::size_t alignment) const final;
  void deallocate(device where, void* data, std::size_t alignment) const noexcept final;
  void copy_to_device(void* target, void const* source, std::size_t bytes,
                      queue const& on) const final;
  void copy_to_host(void* target, void const* source, std::size_t bytes,
                    queue const& on) const final;
  void synchronize(queue const& on) const final;
};

// The explicit list of backends (backend_list.cpp has the guards).
backend_implementation const& reference_backend();
backend_implementation const& kokkos_backend();
backend_implementation const& cuda_backend();

/// True once the host program has said that Kokkos is its own.
bool host_owns_kokkos() noexcept;

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
