#include "state_update.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "argument_checks.hpp"
#include "elements.hpp"
#include "state_update_forms.hpp"
#include "stochastic_rounding.hpp"
#include "update_recurrence.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {
namespace {

// Rounds results into the call's tensors.
class rounded_results final : public update_results {
 public:
  rounded_results(state_update_problem const& problem, state_update_arguments const& arguments)
      : problem_(problem), to_(arguments) {}

  void out(std::int64_t b, std::int64_t k, std::int64_t h, double const* values) override {
    auto const& out = to_.out;
    store(out, b * out.stride(0) + k * out.stride(1) + h * out.stride(2), out.stride(3),
          out.extent(3), values);
  }

  void state(std::int64_t b, std::int64_t k, std::int64_t h, std::int64_t offset,
             double const* values) override {
    auto const& states = to_.final_states;
    auto const by_channel = states.stride(states.rank - 2);
    auto const by_element = states.stride(states.rank - 1);
    offset += h * states.stride(states.rank - 3);
    if (problem_.state_rounding == rounding::stochastic) {
      auto const id = problem_.has_row_ids ? index_at(to_.row_ids, b) : static_cast<int>(b);
      store_stochastically(make_rounding_key(to_.rounding_seed, id, h, k), offset, values);
      return;
    }
    for (std::int64_t n = 0; n < problem_.dstate; ++n) {
      store(states, offset + n * by_element, by_channel, problem_.headdim,
            values + n * problem_.headdim);
    }
  }

 private:
  void store_stochastically(rounding_key key, std::int64_t offset, double const* values) {
    auto const& states = to_.final_states;
    auto const by_channel = states.stride(states.rank - 2);
    auto const by_element = states.stride(states.rank - 1);
    with_element(states.type, [&](auto kind) {
      using element = decltype(kind);
      if constexpr (sizeof(element) == 2) {
        auto* const data = static_cast<element*>(states.data) + offset;
        for (std::int64_t p = 0; p < problem_.headdim; ++p) {
          for (std::int64_t n = 0; n < problem_.dstate; ++n) {
            auto const word =
                rounding_word(key, static_cast<std::uint32_t>(p * problem_.dstate + n));
            data[p * by_channel + n * by_element] = round_stochastically<element>(
                static_cast<float>(values[n * problem_.headdim + p]), word);
          }
        }
      }
    });
  }

  state_update_problem const& problem_;
  state_update_arguments const& to_;
};

class state_update_plan_implementation final : public plan_implementation<state_update_problem> {
 public:
  explicit state_update_plan_implementation(state_update_problem const& problem)
      : problem_(problem) {}

  void execute(state_update_arguments const& given, workspace_view workspace,
               queue const& /*on*/) const override {
    auto const arguments = with_token_axis(given);
    rounded_results results(problem_, arguments);
    run_update(problem_, arguments, results, static_cast<double*>(workspace.data));
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return update_scratch(problem_) * sizeof(double);
  }
  [[nodiscard]] std::string_view description() const noexcept override {
    return "reference token recurrence in f64, 1 thread";
  }
  [[nodiscard]] int threads() const noexcept override { return 1; }

 private:
  state_update_problem problem_;
};

}  // namespace

std::shared_ptr<plan_implementation<state_update_problem> const> make_state_update_plan(
    state_update_problem const& problem) {
  return std::make_shared<state_update_plan_implementation const>(problem);
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
