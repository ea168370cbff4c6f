#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/mixer.hpp>

#include "golden/golden_file.hpp"
#include "support/tested_backend.hpp"

// Whole blocks of Bamba and Falcon-H1, by the published implementations in f32.

namespace mambatile::testing {
namespace {

struct mixer_case {
  golden_file file;
  mixer_problem problem;
  std::vector<evaluation::host_tensor> kept;
  mixer_weights weights;

  explicit mixer_case(std::filesystem::path const& path) : file(path) {
    problem.hidden_size = number("hidden_size");
    problem.nheads = number("num_heads");
    problem.headdim = number("head_dim");
    problem.ngroups = number("n_groups");
    problem.dstate = number("state_size");
    problem.conv_width = number("conv_kernel");
    problem.gated_norm = file.text("rms_norm") == "true";
    problem.norm_before_gate = file.text("norm_before_gate") == "true";
    problem.norm_group_size = number("norm_group_size");
    problem.norm_eps = std::stof(file.text("norm_eps"));
    problem.input_scale = std::stof(file.text("in_multiplier"));
    kept.reserve(16);
    weights.input_projection = keep(file.tensor("in_proj.weight", dtype::f32));
    weights.output_projection = keep(file.tensor("out_proj.weight", dtype::f32));
    weights.column_scale = keep(file.tensor("mup_vector", dtype::f32));
    weights.conv_bias = keep(file.tensor("conv1d.bias", dtype::f32));
    weights.dt_bias = keep(file.tensor("dt_bias", dtype::f32));
    weights.D = keep(file.tensor("D", dtype::f32));
    if (problem.gated_norm) weights.norm_weight = keep(file.tensor("norm.weight", dtype::f32));
    auto A = file.tensor("A_log", dtype::f32);
    for (auto& value : A.elements<float>()) value = -std::exp(value);
    weights.A = keep(std::move(A));
    auto const conv = keep(file.tensor("conv1d.weight", dtype::f32));
    weights.conv_weight = make_view(static_cast<float const*>(conv.data),
                                    {problem.conv_channels(), problem.conv_width});
    problem.has_column_scale = static_cast<bool>(weights.column_scale);
  }

  [[nodiscard]] std::int64_t number(char const* name) const { return std::stoll(file.text(name)); }
  const_tensor_view keep(evaluation::host_tensor tensor) {
    kept.push_back(std::move(tensor));
    return std::as_const(kept.back()).view();
  }
};

// max |got - want| / max |want|; a NaN counts as infinite.
double relative_error(float const* got, const_tensor_view const& want) {
  auto const* const expected = static_cast<float const*>(want.data);
  double worst = 0;
  double largest = 0;
  for (std::int64_t i = 0; i < want.size(); ++i) {
    double const difference =
        std::fabs(static_cast<double>(got[i]) - static_cast<double>(expected[i]));
    worst = difference <= worst
                ? worst
                : (std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
    largest = std::max(largest, std::fabs(static_cast<double>(expected[i])));
  }
  return worst / largest;
}

constexpr double limit = 2e-6;

// The prompt in pieces of `piece` tokens, then the steps one by one.
void check_mixer(std::filesystem::path const& path, std::int64_t piece) {
  INFO(path.filename().string() << " in pieces of " << piece);
  mixer_case of(path);
  auto const hidden = of.file.tensor("hidden_states", dtype::f32);
  auto const batch = hidden.view().extent(0);
  auto const tokens = hidden.view().extent(1);
  auto const size = of.problem.hidden_size;
  of.problem.max_tokens = batch * piece;
  of.problem.max_sequences = batch;
  mixer const block(tested_backend(), tested_device(), of.problem);
  auto const memory = tested_backend().allocate(tested_device(), block.workspace_bytes());

  auto const nan = std::numeric_limits<float>::quiet_NaN();
  auto const columns = of.problem.conv_width - 1;
  auto const channels = of.problem.conv_channels();
  auto const state = of.problem.inner_size() * of.problem.dstate;
  // Slots that nobody has written hold NaN.
  std::vector<float> conv_states(static_cast<std::size_t>(batch * channels * columns), nan);
  std::vector<float> ssm_states(static_cast<std::size_t>(batch * state), nan);
  std::vector<std::int32_t> slots;
  std::vector<std::int32_t> const none(static_cast<std::size_t>(batch), -1);
  for (std::int64_t b = 0; b < batch; ++b) slots.push_back(static_cast<std::int32_t>(b));

  auto const run = [&](const_tensor_view const& source, std::int64_t first, std::int64_t count,
                       bool starts, bool decodes, float* target) {
    auto const all = source.extent(1);
    auto const* const data = static_cast<float const*>(source.data);
    std::vector<float> in;
    std::vector<std::int32_t> cu_seqlens = {0};
    for (std::int64_t b = 0; b < batch; ++b) {
      auto const* const row = data + (b * all + first) * size;
      in.insert(in.end(), row, row + count * size);
      cu_seqlens.push_back(static_cast<std::int32_t>((b + 1) * count));
    }
    std::vector<float> out(in.size(), nan);
    mixer_arguments arguments;
    arguments.hidden = make_view(std::as_const(in).data(), {batch * count, size});
    if (!decodes) {
      arguments.cu_seqlens = make_view(std::as_const(cu_seqlens).data(), {batch + 1});
    }
    arguments.state_source = make_view((starts ? none : slots).data(), {batch});
    arguments.state_target = make_view(std::as_const(slots).data(), {batch});
    arguments.conv_states = make_view(conv_states.data(), {batch, channels, columns});
    arguments.ssm_states = make_state_view(ssm_states.data(), batch, of.problem.nheads,
                                           of.problem.headdim, of.problem.dstate);
    arguments.out = make_view(out.data(), {batch * count, size});
    block.execute(of.weights, arguments, memory.workspace(), queue{.where = tested_device()});
    for (std::int64_t b = 0; b < batch; ++b) {
      std::copy_n(out.begin() + b * count * size, count * size, target + (b * all + first) * size);
    }
  };
  auto const check_states = [&](std::string const& prefix) {
    auto const ssm = of.file.tensor(prefix + "ssm_state", dtype::f32);
    CHECK(relative_error(ssm_states.data(), ssm.view()) <= limit);
    // The file's conv states are conv_width wide; the last columns count.
    auto const conv = of.file.tensor(prefix + "conv_state", dtype::f32);
    evaluation::host_tensor last(dtype::f32, {batch, channels, columns});
    auto const* const from = static_cast<float const*>(conv.view().data);
    auto const to = last.elements<float>();
    for (std::size_t i = 0; i < to.size(); ++i) {
      auto const row = static_cast<std::int64_t>(i) / columns;
      to[i] = from[row * (columns + 1) + 1 + static_cast<std::int64_t>(i) % columns];
    }
    CHECK(relative_error(conv_states.data(), std::as_const(last).view()) <= limit);
  };

  auto const want = of.file.tensor("output", dtype::f32);
  std::vector<float> out(static_cast<std::size_t>(want.view().size()), nan);
  for (std::int64_t first = 0; first < tokens; first += piece) {
    run(std::as_const(hidden).view(), first, std::min(piece, tokens - first), first == 0, false,
        out.data());
  }
  CHECK(relative_error(out.data(), want.view()) <= limit);
  check_states("");

  auto const steps = of.file.tensor("decode_hidden_states", dtype::f32);
  auto const want_steps = of.file.tensor("decode_output", dtype::f32);
  std::vector<float> out_steps(static_cast<std::size_t>(want_steps.view().size()), nan);
  for (std::int64_t step = 0; step < steps.view().extent(1); ++step) {
    run(std::as_const(steps).view(), step, 1, false, true, out_steps.data());
  }
  CHECK(relative_error(out_steps.data(), want_steps.view()) <= limit);
  check_states("decode_");
}

TEST_CASE("mixer: golden blocks", "[golden]") {
  if (!is_host_backend()) SKIP("this backend does not have every operator of a mixer");
  auto const files = golden_files("mixer");
  CHECK(files.size() == 3);
  for (auto const& file : files) {
    for (std::int64_t const piece : {40, 13, 1}) check_mixer(file, piece);
  }
}

}  // namespace
}  // namespace mambatile::testing
