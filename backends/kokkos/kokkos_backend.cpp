#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/plan.hpp>
#include <mambatile/scan.hpp>

#include "backend_implementation.hpp"
#include "cpu_features.hpp"
#include "operators.hpp"
#include "runtime.hpp"

// Compiled for any CPU of the architecture, unlike the rest of the folder: what runs before
// is_available() has said yes must not need what it asks for.

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

class kokkos_backend final : public detail::host_backend_implementation {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "kokkos"; }

  [[nodiscard]] support is_available() const override {
    auto const missing = missing_cpu_features(compiled_target.features);
    if (!missing.empty()) {
      return {false, fmt::format("the backend was compiled for a CPU with {}, which this one lacks",
                                 missing)};
    }
    return runtime_support();
  }

  // States with headdim innermost go in and out without a transpose.
  [[nodiscard]] state_layout preferred_state_layout() const noexcept override {
    return state_layout::headdim_innermost;
  }

  [[nodiscard]] std::string capabilities() const override {
    auto const vectors = fmt::format("{}, {} f32 lanes", compiled_target.instruction_set,
                                     compiled_target.pack_width);
    if (!is_available()) return vectors;
    int const threads = runtime_threads();
    return threads == 0 ? fmt::format("{}, {} (not started)", vectors, runtime_name())
                        : fmt::format("{}, {} with {} threads", vectors, runtime_name(), threads);
  }

  // One pair per operator.
  using detail::all_operators::plan;
  using detail::all_operators::supports;

  [[nodiscard]] support supports(scan_problem const& problem, device /*where*/) const override {
    return scan_support(problem);
  }
  [[nodiscard]] std::shared_ptr<detail::plan_implementation<scan_problem> const> plan(
      scan_problem const& problem, device /*where*/) const override {
    start_runtime();
    return make_scan_plan(problem);
  }

  [[nodiscard]] support supports(conv1d_problem const& /*problem*/,
                                 device /*where*/) const override {
    return {true, {}};
  }
  [[nodiscard]] std::shared_ptr<detail::plan_implementation<conv1d_problem> const> plan(
      conv1d_problem const& problem, device /*where*/) const override {
    start_runtime();
    return make_conv1d_plan(problem);
  }

  [[nodiscard]] support supports(conv1d_update_problem const& /*problem*/,
                                 device /*where*/) const override {
    return {true, {}};
  }
  [[nodiscard]] std::shared_ptr<detail::plan_implementation<conv1d_update_problem> const> plan(
      conv1d_update_problem const& problem, device /*where*/) const override {
    start_runtime();
    return make_conv1d_update_plan(problem);
  }

  [[nodiscard]] support supports(gated_rms_norm_problem const& /*problem*/,
                                 device /*where*/) const override {
    return {true, {}};
  }
  [[nodiscard]] std::shared_ptr<detail::plan_implementation<gated_rms_norm_problem> const> plan(
      gated_rms_norm_problem const& problem, device /*where*/) const override {
    start_runtime();
    return make_gated_rms_norm_plan(problem);
  }
};

}  // namespace
}  // namespace kokkos

detail::backend_implementation const& detail::kokkos_backend() {
  static kokkos::kokkos_backend const backend;
  return backend;
}

}  // namespace v0
}  // namespace mambatile
