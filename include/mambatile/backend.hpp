#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <mambatile/export.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/tensor_view.hpp>

/// @file
/// Backends: who computes, and where memory comes from.

namespace mambatile {
inline namespace v0 {

namespace detail {
class backend_implementation;
}

/// Memory on a device, freed when it goes out of scope. Host memory can be used directly.
class MAMBATILE_EXPORT buffer {
 public:
  buffer() noexcept = default;
  buffer(buffer&& other) noexcept;
  buffer& operator=(buffer&& other) noexcept;
  ~buffer();

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] device where() const noexcept { return where_; }
  [[nodiscard]] workspace_view workspace() const noexcept { return {data_, bytes_, where_}; }

 private:
  friend class backend;
  detail::backend_implementation const* owner_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t alignment_ = workspace_alignment;
  device where_ = {};
};

/// One way to compute. Backends are process-wide singletons; get them from compiled_backends or
/// find_backend.
class MAMBATILE_EXPORT backend {
 public:
  backend(backend const&) = delete;
  backend& operator=(backend const&) = delete;

  /// "reference", "kokkos" or "cuda".
  [[nodiscard]] std::string_view name() const noexcept;
  /// The kind of device its tensors live on.
  [[nodiscard]] device_kind kind() const noexcept;
  /// Whether it can run here and now, and why not. Never throws for a missing device or driver.
  [[nodiscard]] support is_available() const;
  /// Devices it can use; 0 when it is not available.
  [[nodiscard]] int device_count() const;
  /// Storage order of states that is fastest here. The other works too.
  [[nodiscard]] state_layout preferred_state_layout() const noexcept;
  /// What it computes with, in one line: instruction set, threads, device name.
  [[nodiscard]] std::string capabilities() const;

  /// Whether a plan for this problem can be had on the device, and why not. The same predicate
  /// decides in plan.
  template <class Problem>
  [[nodiscard]] support supports(Problem const& problem, device where) const;
  template <class Problem>
  [[nodiscard]] support supports(Problem const& problem) const {
    return supports(problem, device{kind(), 0});
  }

  /// Validates the problem, chooses an algorithm and sizes the workspace.
  /// @throws invalid_argument when the problem breaks a rule, unsupported with supports' reason,
  ///   backend_unavailable with is_available's reason.
  template <class Problem>
  [[nodiscard]] operator_plan<Problem> plan(Problem const& problem, device where) const;
  template <class Problem>
  [[nodiscard]] operator_plan<Problem> plan(Problem const& problem) const {
    return plan(problem, device{kind(), 0});
  }

  /// Uninitialised memory on a device. `alignment` is a power of two.
  /// @throws backend_failure when it cannot be had.
  [[nodiscard]] buffer allocate(device where, std::size_t bytes,
                                std::size_t alignment = workspace_alignment) const;
  /// Copies between the host and this backend's device, in the queue's order. Host memory must stay
  /// valid until the queue is synchronised.
  void copy_to_device(void* target, void const* host_source, std::size_t bytes, queue on) const;
  void copy_to_host(void* host_target, void const* source, std::size_t bytes, queue on) const;
  /// Waits until everything on the queue is done.
  void synchronize(queue on) const;

  /// Used by the library's own list of backends.
  explicit backend(detail::backend_implementation const& implementation) noexcept;

 private:
  detail::backend_implementation const* implementation_;
};

/// The backends that were compiled in, fastest kind first, `reference` last.
[[nodiscard]] MAMBATILE_EXPORT std::span<backend const* const> compiled_backends() noexcept;

/// The backend with this name.
/// @throws backend_unavailable when none was compiled in; the message lists those that were.
[[nodiscard]] MAMBATILE_EXPORT backend const& find_backend(std::string_view name);

/// The fastest available backend for tensors that live on such a device.
/// @throws backend_unavailable when there is none.
[[nodiscard]] MAMBATILE_EXPORT backend const& find_backend(device_kind kind);

/// The backend named by the environment variable MAMBATILE_BACKEND; without it, the one chosen when
/// the library was configured.
/// @throws backend_unavailable when the environment names one that was not compiled in.
[[nodiscard]] MAMBATILE_EXPORT backend const& default_backend();

/// States that the host program owns Kokkos: the library then never initialises it, and the kokkos
/// backend is unavailable until the host has. Call before the first plan. Without this call, a
/// Kokkos that is not initialised when the first plan is made is initialised and, at exit,
/// finalised by the library.
MAMBATILE_EXPORT void use_host_kokkos() noexcept;

}  // namespace v0
}  // namespace mambatile
