#include "support/norm_trial.hpp"

#include <array>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "evaluation/conv_norm_tolerances.hpp"
#include "evaluation/tensor_error.hpp"
#include "norm_rows.hpp"
#include "reference/norm.hpp"
#include "support/execute.hpp"
#include "support/random_numbers.hpp"

namespace mambatile::testing {

norm_tensors::norm_tensors(norm_trial const& trial) {
  auto const& problem = trial.problem;
  auto shape = trial.outer;
  shape.push_back(problem.channels);
  // An output has no negative strides; an input may.
  auto const of_output = trial.lies == arrangement::reversed ? arrangement::padded : trial.lies;
  x = test_tensor(problem.io, shape, trial.lies);
  out = test_tensor(problem.io, shape, of_output);
  weight = test_tensor(problem.weight, {problem.channels});
  auto const fill = [&](test_tensor& tensor, char const* name, double scale) {
    random_numbers stream(trial.seed, name);
    tensor.fill([&] { return scale * stream.normal(); });
  };
  fill(x, "x", trial.scale);
  fill(weight, "weight", 1.0);
  if (problem.has_z) {
    z = test_tensor(problem.io, shape, trial.lies);
    fill(z, "z", trial.z_scale);
  }
  if (problem.has_bias) {
    bias = test_tensor(problem.bias, {problem.channels});
    fill(bias, "bias", 0.5);
  }
  if (trial.zero_rows_every != 0) {
    auto const to = x.image();
    for (std::int64_t row = 0; row < problem.max_rows; row += trial.zero_rows_every) {
      for (std::int64_t c = 0; c < problem.channels; ++c) {
        test_tensor::set(to, mambatile::detail::norm_row_offset(to, row) + c, 0.0);
      }
    }
  }
  out.memory().allow(out.view());
}

gated_rms_norm_arguments norm_tensors::arguments() const {
  return {x.view(), z.view(), weight.view(), bias.view(), out.view()};
}
gated_rms_norm_arguments norm_tensors::images() const {
  return {x.image(), z.image(), weight.image(), bias.image(), out.image()};
}
void norm_tensors::upload() const {
  for (auto const* tensor : {&x, &z, &weight, &bias, &out}) tensor->upload();
}
void norm_tensors::download() const {
  for (auto const* tensor : {&x, &z, &weight, &bias, &out}) tensor->download();
}
void norm_tensors::check_guards() const {
  for (auto const* tensor : {&x, &z, &weight, &bias, &out}) {
    if (*tensor) CHECK(tensor->memory().stray_write() == std::string());
  }
}

norm_tensors run_norm_trial(norm_trial const& trial) {
  INFO(to_string(trial.problem) << ", seed " << trial.seed);
  norm_tensors tensors(trial);
  tensors.upload();
  execute(trial.problem, tensors.arguments(), trial.threads);
  tensors.download();
  tensors.check_guards();
  return tensors;
}

void check_norm_trial(norm_trial const& trial) {
  auto const& problem = trial.problem;
  auto const tensors = run_norm_trial(trial);
  auto const host = tensors.images();
  INFO(to_string(problem) << ", " << to_string(trial.lies) << ", seed " << trial.seed);
  std::vector<double> scratch(mambatile::detail::reference::gated_rms_norm_scratch(problem));
  auto const got = tensors.out.result();
  evaluation::error_accumulator errors(1);
  std::int64_t wrong_zeros = 0;
  for (std::int64_t row = 0; row < problem.max_rows; ++row) {
    auto const* const want =
        mambatile::detail::reference::gated_rms_norm_row(problem, host, row, scratch.data());
    for (std::int64_t c = 0; c < problem.channels; ++c) {
      auto const value = test_tensor::get(got, mambatile::detail::norm_row_offset(got, row) + c);
      if (want[c] == 0.0) {
        wrong_zeros += value != 0.0;
      } else {
        errors.add(0, value, want[c]);
      }
    }
  }
  CHECK(wrong_zeros == 0);
  auto const error = errors.result();
  auto const limits = evaluation::limits_of_gated_rms_norm(problem.io);
  INFO("out: error " << error.slice << " (limit " << limits.slice << "), peak " << error.peak
                     << " (limit " << limits.peak << "), finite " << error.finite);
  CHECK(error.within(limits));
}

}  // namespace mambatile::testing
