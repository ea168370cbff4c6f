#include <memory>
#include <string>
#include <string_view>

#include "backend_implementation.hpp"
#include "conv1d.hpp"
#include "matmul.hpp"
#include "norm.hpp"
#include "scan.hpp"
#include "state_update.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

class reference_implementation final : public host_backend_implementation {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "reference"; }
  [[nodiscard]] support is_available() const override { return {true, {}}; }
  [[nodiscard]] state_layout preferred_state_layout() const noexcept override {
    return state_layout::headdim_innermost;
  }
  [[nodiscard]] std::string capabilities() const override { return "f64, 1 thread"; }

  using host_backend_implementation::plan;
  using host_backend_implementation::supports;

  [[nodiscard]] support supports(scan_problem const& /*problem*/, device /*where*/) const override {
    return {true, {}};
  }
  [[nodiscard]] std::shared_ptr<plan_implementation<scan_problem> const> plan(
      scan_problem const& problem, device /*where*/) const override {
    return reference::make_scan_plan(problem);
  }

  [[nodiscard]] support supports(conv1d_problem const& /*problem*/,
                                 device /*where*/) const override {
    return {true, {}};
  }
  [[nodiscard]] std::shared_ptr<plan_implementation<conv1d_problem> const> plan(
      conv1d_problem const& problem, device /*where*/) const override {
    return reference::make_conv1d_plan(problem);
  }

  [[nodiscard]] support supports(conv1d_update_problem const& /*problem*/,
                                 device /*where*/) const override {
    return {true, {}};
  }
  [[nodiscard]] std::shared_ptr<plan_implementation<conv1d_update_problem> const> plan(
      conv1d_update_problem const& problem, device /*where*/) const override {
    return reference::make_conv1d_update_plan(problem);
  }

  [[nodiscard]] support supports(gated_rms_norm_problem const& /*problem*/,
                                 device /*where*/) const override {
    return {true, {}};
  }
  [[nodiscard]] std::shared_ptr<plan_implementation<gated_rms_norm_problem> const> plan(
      gated_rms_norm_problem const& problem, device /*where*/) const override {
    return reference::make_gated_rms_norm_plan(problem);
  }

  [[nodiscard]] support supports(matmul_problem const& /*problem*/,
                                 device /*where*/) const override {
    return {true, {}};
  }
  [[nodiscard]] std::shared_ptr<plan_implementation<matmul_problem> const> plan(
      matmul_problem const& problem, device /*where*/) const override {
    return reference::make_matmul_plan(problem);
  }

  [[nodiscard]] support supports(take_rows_problem const& /*problem*/,
                                 device /*where*/) const override {
    return {true, {}};
  }
  [[nodiscard]] std::shared_ptr<plan_implementation<take_rows_problem> const> plan(
      take_rows_problem const& problem, device /*where*/) const override {
    return reference::make_take_rows_plan(problem);
  }

  [[nodiscard]] support supports(state_update_problem const& /*problem*/,
                                 device /*where*/) const override {
    return {true, {}};
  }
  [[nodiscard]] std::shared_ptr<plan_implementation<state_update_problem> const> plan(
      state_update_problem const& problem, device /*where*/) const override {
    return reference::make_state_update_plan(problem);
  }
};

}  // namespace

backend_implementation const& reference_backend() {
  static reference_implementation const implementation;
  return implementation;
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
