#include "conv1d.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "conv1d_forms.hpp"
#include "convolution.hpp"
#include "elements.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {
namespace {

// Rounds results into the call's tensors.
class rounded_results final : public conv1d_results {
 public:
  explicit rounded_results(conv1d_update_arguments const& arguments) : to_(arguments) {}

  void out(std::int64_t b, std::int64_t l, std::int64_t c, double value) override {
    auto const& out = to_.out;
    store(out, b * out.stride(0) + l * out.stride(1) + c * out.stride(2), 0, 1, &value);
  }

  void final_state(std::int64_t offset, std::int64_t c, double const* columns) override {
    auto const& states = to_.final_states;
    store(states, offset + c * states.stride(states.rank - 2), states.stride(states.rank - 1),
          states.extent(states.rank - 1), columns);
  }

 private:
  conv1d_update_arguments const& to_;
};

template <class Problem>
class conv1d_plan_implementation final : public plan_implementation<Problem> {
 public:
  explicit conv1d_plan_implementation(conv1d_update_problem const& problem) : problem_(problem) {}

  void execute(typename Problem::arguments_type const& arguments, workspace_view workspace,
               queue const& /*on*/) const override {
    conv1d_update_arguments call;
    if constexpr (std::is_same_v<Problem, conv1d_problem>) {
      call = as_update(arguments);
    } else {
      call = arguments;
    }
    call.x = with_token_axis(call.x);
    call.out = with_token_axis(call.out);
    rounded_results results(call);
    run_conv1d(problem_, call, results, static_cast<double*>(workspace.data));
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return conv1d_scratch(problem_) * sizeof(double);
  }
  [[nodiscard]] std::string_view description() const noexcept override {
    return "reference convolution token by token in f64, 1 thread";
  }
  [[nodiscard]] int threads() const noexcept override { return 1; }

 private:
  conv1d_update_problem problem_;
};

}  // namespace

std::shared_ptr<plan_implementation<conv1d_problem> const> make_conv1d_plan(
    conv1d_problem const& problem) {
  return std::make_shared<conv1d_plan_implementation<conv1d_problem> const>(as_update(problem));
}

std::shared_ptr<plan_implementation<conv1d_update_problem> const> make_conv1d_update_plan(
    conv1d_update_problem const& problem) {
  return std::make_shared<conv1d_plan_implementation<conv1d_update_problem> const>(problem);
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
