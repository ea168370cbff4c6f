#include "matmul.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "elements.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {
namespace {

class matmul_plan_implementation final : public plan_implementation<matmul_problem> {
 public:
  explicit matmul_plan_implementation(matmul_problem const& problem) : problem_(problem) {}

  void execute(matmul_arguments const& arguments, workspace_view workspace,
               queue const& /*on*/) const override {
    auto const in_features = problem_.in_features;
    auto* const x = static_cast<double*>(workspace.data);
    auto* const weight = x + in_features;
    for (std::int64_t r = 0; r < arguments.x.extent(0); ++r) {
      load(arguments.x, r * arguments.x.stride(0), 1, in_features, x);
      for (std::int64_t o = 0; o < problem_.out_features; ++o) {
        load(arguments.weight, o * arguments.weight.stride(0), 1, in_features, weight);
        double sum = 0.0;
        for (std::int64_t i = 0; i < in_features; ++i) sum += x[i] * weight[i];
        sum *= static_cast<double>(problem_.input_scale);
        if (problem_.has_bias) sum += load(arguments.bias, o * arguments.bias.stride(0));
        if (problem_.has_column_scale) {
          sum *= load(arguments.column_scale, o * arguments.column_scale.stride(0));
        }
        auto const position = r * arguments.out.stride(0) + o;
        if (problem_.accumulate) sum += load(arguments.out, position);
        store(arguments.out, position, 1, 1, &sum);
      }
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return static_cast<std::size_t>(2 * problem_.in_features) * sizeof(double);
  }
  [[nodiscard]] std::string_view description() const noexcept override {
    return "reference dot products in f64, 1 thread";
  }
  [[nodiscard]] int threads() const noexcept override { return 1; }

 private:
  matmul_problem problem_;
};

class take_rows_plan_implementation final : public plan_implementation<take_rows_problem> {
 public:
  explicit take_rows_plan_implementation(take_rows_problem const& problem) : problem_(problem) {}

  void execute(take_rows_arguments const& arguments, workspace_view workspace,
               queue const& /*on*/) const override {
    auto* const row = static_cast<double*>(workspace.data);
    auto const* const index = static_cast<std::int32_t const*>(arguments.index.data);
    for (std::int64_t r = 0; r < arguments.index.extent(0); ++r) {
      std::int64_t const taken = index[r * arguments.index.stride(0)];
      load(arguments.source, taken * arguments.source.stride(0), 1, problem_.row_length, row);
      store(arguments.out, r * arguments.out.stride(0), 1, problem_.row_length, row);
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return static_cast<std::size_t>(problem_.row_length) * sizeof(double);
  }
  [[nodiscard]] std::string_view description() const noexcept override {
    return "reference row copies, 1 thread";
  }
  [[nodiscard]] int threads() const noexcept override { return 1; }

 private:
  take_rows_problem problem_;
};

}  // namespace

std::shared_ptr<plan_implementation<matmul_problem> const> make_matmul_plan(
    matmul_problem const& problem) {
  return std::make_shared<matmul_plan_implementation const>(problem);
}

std::shared_ptr<plan_implementation<take_rows_problem> const> make_take_rows_plan(
    take_rows_problem const& problem) {
  return std::make_shared<take_rows_plan_implementation const>(problem);
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
