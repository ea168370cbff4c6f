#include "scan.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "elements.hpp"
#include "recurrence.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {
namespace {

// Rounds results into the call's tensors.
class rounded_results final : public scan_results {
 public:
  explicit rounded_results(scan_arguments const& arguments) : to_(arguments) {}

  void out(std::int64_t b, std::int64_t l, std::int64_t h, double const* values) override {
    auto const& out = to_.out;
    store(out, b * out.stride(0) + l * out.stride(1) + h * out.stride(2), out.stride(3),
          out.extent(3), values);
  }

  void final_state(std::int64_t row, std::int64_t h, std::int64_t n,
                   double const* values) override {
    auto const& states = to_.final_states;
    store(states, row * states.stride(0) + h * states.stride(1) + n * states.stride(3),
          states.stride(2), states.extent(2), values);
  }

  void intermediate_state(std::int64_t b, std::int64_t row, std::int64_t h, std::int64_t n,
                          double const* values) override {
    auto const& states = to_.intermediate_states;
    store(
        states,
        b * states.stride(0) + row * states.stride(1) + h * states.stride(2) + n * states.stride(4),
        states.stride(3), states.extent(3), values);
  }

  void total_decay(std::int64_t row, std::int64_t h, double value) override {
    auto const& decay = to_.total_decay;
    store(decay, row * decay.stride(0) + h * decay.stride(1), 0, 1, &value);
  }

 private:
  scan_arguments const& to_;
};

class scan_plan_implementation final : public plan_implementation<scan_problem> {
 public:
  explicit scan_plan_implementation(scan_problem const& problem) : problem_(problem) {}

  void execute(scan_arguments const& arguments, workspace_view workspace,
               queue const& /*on*/) const override {
    rounded_results results(arguments);
    run_scan(problem_, arguments, results, static_cast<double*>(workspace.data));
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return scan_scratch(problem_) * sizeof(double);
  }
  [[nodiscard]] std::string_view description() const noexcept override {
    return "reference token recurrence in f64, 1 thread";
  }
  [[nodiscard]] int threads() const noexcept override { return 1; }

 private:
  scan_problem problem_;
};

}  // namespace

std::shared_ptr<plan_implementation<scan_problem> const> make_scan_plan(
    scan_problem const& problem) {
  return std::make_shared<scan_plan_implementation const>(problem);
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
