#include "norm.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "elements.hpp"
#include "norm_rows.hpp"
#include "steps.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {
namespace {

// 1 / rms of one group; of zeros, for eps = 0, anything finite.
double inverse_rms(double const* values, std::int64_t count, float eps) {
  double squares = 0.0;
  for (std::int64_t i = 0; i < count; ++i) squares += values[i] * values[i];
  double const mean = squares / static_cast<double>(count) + static_cast<double>(eps);
  return mean == 0.0 ? 0.0 : 1.0 / std::sqrt(mean);
}

class gated_rms_norm_plan_implementation final
    : public plan_implementation<gated_rms_norm_problem> {
 public:
  explicit gated_rms_norm_plan_implementation(gated_rms_norm_problem const& problem)
      : problem_(problem) {}

  void execute(gated_rms_norm_arguments const& arguments, workspace_view workspace,
               queue const& /*on*/) const override {
    auto const rows = norm_rows(arguments.x);
    for (std::int64_t row = 0; row < rows; ++row) {
      store(arguments.out, norm_row_offset(arguments.out, row), 1, problem_.channels,
            gated_rms_norm_row(problem_, arguments, row, static_cast<double*>(workspace.data)));
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return gated_rms_norm_scratch(problem_) * sizeof(double);
  }
  [[nodiscard]] std::string_view description() const noexcept override {
    return "reference norm row by row in f64, 1 thread";
  }
  [[nodiscard]] int threads() const noexcept override { return 1; }

 private:
  gated_rms_norm_problem problem_;
};

}  // namespace

std::size_t gated_rms_norm_scratch(gated_rms_norm_problem const& problem) noexcept {
  return static_cast<std::size_t>(4 * problem.channels);
}

double const* gated_rms_norm_row(gated_rms_norm_problem const& problem,
                                 gated_rms_norm_arguments const& arguments, std::int64_t row,
                                 double* scratch) {
  auto const channels = problem.channels;
  double* const values = scratch;
  double* const gate = values + channels;
  double* const weight = gate + channels;
  double* const bias = weight + channels;
  load(arguments.x, norm_row_offset(arguments.x, row), 1, channels, values);
  load(arguments.weight, 0, arguments.weight.stride(0), channels, weight);
  for (std::int64_t c = 0; c < channels; ++c) {
    gate[c] = 1.0;
    bias[c] = 0.0;
  }
  if (problem.has_bias) load(arguments.bias, 0, arguments.bias.stride(0), channels, bias);
  if (problem.has_z) {
    load(arguments.z, norm_row_offset(arguments.z, row), 1, channels, gate);
    for (std::int64_t c = 0; c < channels; ++c) gate[c] = silu(gate[c]);
  }
  if (!problem.norm_before_gate) {
    for (std::int64_t c = 0; c < channels; ++c) {
      values[c] *= gate[c];
      gate[c] = 1.0;
    }
  }
  auto const group_size = problem.group_size == 0 ? channels : problem.group_size;
  for (std::int64_t first = 0; first < channels; first += group_size) {
    double const scale = inverse_rms(values + first, group_size, problem.eps);
    for (std::int64_t c = first; c < first + group_size; ++c) {
      values[c] = (values[c] * scale * weight[c] + bias[c]) * gate[c];
    }
  }
  return values;
}

std::shared_ptr<plan_implementation<gated_rms_norm_problem> const> make_gated_rms_norm_plan(
    gated_rms_norm_problem const& problem) {
  return std::make_shared<gated_rms_norm_plan_implementation const>(problem);
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
