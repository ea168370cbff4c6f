// One Mamba-2 block over two packed sequences of different lengths, then a decode step for both:
// the same numbers as if all tokens had come at once.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <mambatile/mambatile.hpp>

namespace {

std::vector<float> wave(std::int64_t size, float scale, float pace) {
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = scale * std::sin(pace * static_cast<float>(i) + pace);
  }
  return values;
}

}  // namespace

int main() try {
  using namespace mambatile;
  mixer_problem block{.max_tokens = 64, .max_sequences = 2, .hidden_size = 96, .nheads = 6};
  block.headdim = 32;
  block.dstate = 16;
  auto const rows = block.projection_rows(), inner = block.inner_size();
  auto const channels = block.conv_channels();
  mixer const runs(default_backend(), {}, block);
  std::printf("%s\n", runs.description().c_str());

  auto const in = wave(rows * 96, 0.1F, 0.37F), out = wave(96 * inner, 0.1F, 0.53F);
  auto const conv = wave(channels * 4, 0.5F, 0.71F), conv_bias = wave(channels, 0.1F, 0.3F);
  auto const dt_bias = wave(6, 1, 0.9F), D = wave(6, 1, 0.4F), norm = wave(inner, 1, 0.2F);
  std::vector<float> const A(6, -1.5F);
  mixer_weights const weights = {.input_projection = make_view(in.data(), {rows, 96}),
                                 .conv_weight = make_view(conv.data(), {channels, 4}),
                                 .conv_bias = make_view(conv_bias.data(), {channels}),
                                 .dt_bias = make_view(dt_bias.data(), {6}),
                                 .A = make_view(A.data(), {6}),
                                 .D = make_view(D.data(), {6}),
                                 .norm_weight = make_view(norm.data(), {inner}),
                                 .output_projection = make_view(out.data(), {96, inner})};

  std::vector<float> conv_states(static_cast<std::size_t>(2 * channels * 3));
  std::vector<float> ssm_states(static_cast<std::size_t>(2 * inner * 16));
  auto const workspace = default_backend().allocate({}, runs.workspace_bytes());
  std::vector<std::int32_t> const slots = {0, 1}, none = {-1, -1};
  // Tokens of both sequences, one after the other; an empty cu_seqlens means one token each.
  auto const run = [&](std::vector<float> const& hidden,
                       std::vector<std::int32_t> const& cu_seqlens,
                       std::vector<std::int32_t> const& source) {
    auto const tokens = static_cast<std::int64_t>(hidden.size()) / 96;
    std::vector<float> result(hidden.size());
    mixer_arguments call;
    call.hidden = make_view(hidden.data(), {tokens, 96});
    if (!cu_seqlens.empty()) call.cu_seqlens = make_view(cu_seqlens.data(), {3});
    call.state_source = make_view(source.data(), {2});
    call.state_target = make_view(slots.data(), {2});
    call.conv_states = make_view(conv_states.data(), {2, channels, 3});
    call.ssm_states = make_view(ssm_states.data(), {2, 6, 32, 16});
    call.out = make_view(result.data(), {tokens, 96});
    runs.execute(weights, call, workspace.workspace(), {});
    return result;
  };

  auto const first = wave(20 * 96, 1, 0.11F), second = wave(8 * 96, 1, 0.17F);
  auto const joined = [](auto a, auto const& b) {
    return a.insert(a.end(), b.begin(), b.end()), a;
  };
  auto const whole = run(joined(first, second), {0, 20, 28}, none);

  std::vector<float> const first_19(first.begin(), first.end() - 96);
  std::vector<float> const second_7(second.begin(), second.end() - 96);
  std::vector<float> const last_of_first(first.end() - 96, first.end());
  std::vector<float> const last_of_second(second.end() - 96, second.end());
  (void)run(joined(first_19, second_7), {0, 19, 26}, none);
  auto const stepped = run(joined(last_of_first, last_of_second), {}, slots);

  float difference = 0, largest = 0;
  for (std::size_t i = 0; i < 96; ++i) {
    difference = std::fmax(difference, std::fabs(stepped[i] - whole[19 * 96 + i]));
    difference = std::fmax(difference, std::fabs(stepped[96 + i] - whole[27 * 96 + i]));
    largest = std::fmax(largest, std::fabs(whole[27 * 96 + i]));
  }
  std::printf("a decode step and the whole prefill differ by %.1e of the largest output\n",
              double{difference / largest});
  return difference <= 1e-5F * largest ? 0 : 1;
} catch (mambatile::error const& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
