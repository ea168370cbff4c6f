#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <mambatile/errors.hpp>

#include "backend_implementation.hpp"
#include "device.hpp"
#include "norm_plan.hpp"
#include "scan_plan.hpp"
#include "scan_structure.hpp"
#include "state_update_plan.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

class cuda_backend final : public detail::backend_implementation {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "cuda"; }
  [[nodiscard]] device_kind kind() const noexcept override { return device_kind::cuda; }
  [[nodiscard]] support is_available() const override { return runtime_available(); }
  [[nodiscard]] int device_count() const override { return count_devices(); }
  [[nodiscard]] state_layout preferred_state_layout() const noexcept override {
    return state_layout::dstate_innermost;
  }
  [[nodiscard]] std::string capabilities() const override {
    if (auto const available = is_available(); !available) return available.reason;
    return fmt::format("{}, sm_{}", device_name(0), properties_of(0).architecture);
  }

  using detail::backend_implementation::plan;
  using detail::backend_implementation::supports;

  [[nodiscard]] support supports(scan_problem const& problem, device where) const override {
    if (auto const compiled = compiled_for(properties_of(where.index)); !compiled) return compiled;
    return supports_scan(problem);
  }
  [[nodiscard]] std::shared_ptr<detail::plan_implementation<scan_problem> const> plan(
      scan_problem const& problem, device where) const override {
    return make_scan_plan(problem, where);
  }
  [[nodiscard]] support supports(state_update_problem const& problem, device where) const override {
    if (auto const compiled = compiled_for(properties_of(where.index)); !compiled) return compiled;
    return supports_state_update(problem);
  }
  [[nodiscard]] std::shared_ptr<detail::plan_implementation<state_update_problem> const> plan(
      state_update_problem const& problem, device where) const override {
    return make_state_update_plan(problem, where);
  }
  [[nodiscard]] support supports(gated_rms_norm_problem const& problem,
                                 device where) const override {
    if (auto const compiled = compiled_for(properties_of(where.index)); !compiled) return compiled;
    return supports_gated_rms_norm(problem);
  }
  [[nodiscard]] std::shared_ptr<detail::plan_implementation<gated_rms_norm_problem> const> plan(
      gated_rms_norm_problem const& problem, device where) const override {
    return make_gated_rms_norm_plan(problem, where);
  }

  // cudaMalloc aligns to 256 bytes; nobody needs more.
  [[nodiscard]] void* allocate(device where, std::size_t bytes,
                               std::size_t alignment) const override {
    if (alignment > workspace_alignment) return nullptr;
    device_scope const scope(where.index);
    void* data = nullptr;
    if (cudaMalloc(&data, bytes == 0 ? 1 : bytes) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return nullptr;
    }
    return data;
  }
  void deallocate(device /*where*/, void* data, std::size_t /*alignment*/) const noexcept override {
    static_cast<void>(cudaFree(data));
  }
  void copy_to_device(void* target, void const* source, std::size_t bytes,
                      queue const& on) const override {
    copy(target, source, bytes, cudaMemcpyHostToDevice, on);
  }
  void copy_to_host(void* target, void const* source, std::size_t bytes,
                    queue const& on) const override {
    copy(target, source, bytes, cudaMemcpyDeviceToHost, on);
  }
  void synchronize(queue const& on) const override {
    device_scope const scope(on.where.index);
    check(cudaStreamSynchronize(static_cast<cudaStream_t>(on.native)), "waiting for the queue");
  }

 private:
  static void copy(void* target, void const* source, std::size_t bytes, cudaMemcpyKind kind,
                   queue const& on) {
    device_scope const scope(on.where.index);
    check(cudaMemcpyAsync(target, source, bytes, kind, static_cast<cudaStream_t>(on.native)),
          "copying memory");
  }
};

}  // namespace
}  // namespace gpu

detail::backend_implementation const& detail::cuda_backend() {
  static gpu::cuda_backend const backend;
  return backend;
}

}  // namespace v0
}  // namespace mambatile
