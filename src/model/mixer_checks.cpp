#include "model/mixer_checks.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/mixer.hpp>

#include "argument_checks.hpp"
#include "operator_plan.hpp"
#include "problem_checks.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

constexpr std::string_view operator_name = "mixer";

void check_weights(argument_checker const& checker, mixer_problem const& problem,
                   mixer_weights const& weights) {
  expected_axis const projection_rows{"projection_rows", problem.projection_rows()};
  expected_axis const hidden_size{"hidden_size", problem.hidden_size};
  expected_axis const inner_size{"inner_size", problem.inner_size()};
  expected_axis const conv_channels{"conv_channels", problem.conv_channels()};
  expected_axis const nheads{"nheads", problem.nheads};

  bool const bias = problem.has_projections && problem.has_projection_bias;
  checker.presence({"input_bias", weights.input_bias}, bias, "has_projection_bias",
                   problem.has_projection_bias);
  checker.presence({"output_bias", weights.output_bias}, bias, "has_projection_bias",
                   problem.has_projection_bias);
  checker.presence({"column_scale", weights.column_scale},
                   problem.has_projections && problem.has_column_scale, "has_column_scale",
                   problem.has_column_scale);
  checker.presence({"conv_bias", weights.conv_bias}, problem.has_conv_bias, "has_conv_bias",
                   problem.has_conv_bias);
  checker.presence({"D", weights.D}, problem.D != skip::none, "D", to_string(problem.D));
  checker.presence({"norm_weight", weights.norm_weight}, problem.gated_norm, "gated_norm",
                   problem.gated_norm);

  if (problem.has_projections) {
    named_tensor const input{"input_projection", weights.input_projection};
    named_tensor const output{"output_projection", weights.output_projection};
    checker.tensor(input, problem.projection, {projection_rows, hidden_size});
    checker.tensor(output, problem.projection, {hidden_size, inner_size});
    checker.inner_stride(input);
    checker.inner_stride(output);
  }
  if (bias) {
    checker.tensor({"input_bias", weights.input_bias}, problem.projection_bias, {projection_rows});
    checker.tensor({"output_bias", weights.output_bias}, problem.projection_bias, {hidden_size});
  }
  if (problem.has_projections && problem.has_column_scale) {
    checker.tensor({"column_scale", weights.column_scale}, dtype::f32, {projection_rows});
  }
  checker.tensor({"conv_weight", weights.conv_weight}, problem.conv,
                 {conv_channels, {"conv_width", problem.conv_width}});
  if (problem.has_conv_bias) {
    checker.tensor({"conv_bias", weights.conv_bias}, problem.conv, {conv_channels});
  }
  checker.tensor({"dt_bias", weights.dt_bias}, dtype::f32, {nheads});
  checker.tensor({"A", weights.A}, dtype::f32, {nheads});
  if (problem.D == skip::per_head) checker.tensor({"D", weights.D}, dtype::f32, {nheads});
  if (problem.D == skip::per_channel) {
    checker.tensor({"D", weights.D}, dtype::f32, {nheads, {"headdim", problem.headdim}});
  }
  if (problem.gated_norm) {
    checker.tensor({"norm_weight", weights.norm_weight}, problem.norm, {inner_size});
  }
}

std::array<named_tensor, 11> all_weights(mixer_weights const& weights) {
  return {{{"input_projection", weights.input_projection},
           {"input_bias", weights.input_bias},
           {"column_scale", weights.column_scale},
           {"conv_weight", weights.conv_weight},
           {"conv_bias", weights.conv_bias},
           {"dt_bias", weights.dt_bias},
           {"A", weights.A},
           {"D", weights.D},
           {"norm_weight", weights.norm_weight},
           {"output_projection", weights.output_projection},
           {"output_bias", weights.output_bias}}};
}

}  // namespace

void validate(mixer_problem const& problem) {
  problem_checker const checker(operator_name);
  checker.not_negative("max_tokens", problem.max_tokens);
  checker.not_negative("max_sequences", problem.max_sequences);
  checker.not_negative("hidden_size", problem.hidden_size);
  checker.not_negative("nheads", problem.nheads);
  checker.not_negative("headdim", problem.headdim);
  checker.not_negative("dstate", problem.dstate);
  checker.groups(problem.nheads, problem.ngroups);
  if (problem.conv_width < 1) {
    checker.fail(fmt::format("conv_width = {}, but it must be at least 1", problem.conv_width));
  }
  if (problem.has_projections) return;
  if (problem.hidden != problem.io || problem.out != problem.io) {
    checker.fail(
        fmt::format("hidden = {} and out = {}, but without projections both have the io "
                    "type {}",
                    to_string(problem.hidden), to_string(problem.out), to_string(problem.io)));
  }
  if (problem.accumulate) checker.fail("accumulate = true needs has_projections = true");
}

void check(mixer_problem const& problem, mixer_weights const& weights,
           mixer_arguments const& arguments, device where, workspace_view workspace,
           std::size_t workspace_bytes) {
  check_workspace(operator_name, workspace, workspace_bytes, where);
  argument_checker const checker(operator_name, where);
  check_weights(checker, problem, weights);

  bool const projects = problem.has_projections;
  named_tensor const hidden{projects ? "hidden" : "hidden (zxBCdt)", arguments.hidden};
  named_tensor const out{"out", arguments.out};
  checker.rank(hidden, 2, projects ? "(tokens, hidden_size)" : "(tokens, projection_rows)");
  expected_axis const tokens{"tokens", arguments.hidden.extent(0)};
  expected_axis const hidden_size{"hidden_size", problem.hidden_size};
  checker.tensor(hidden, problem.hidden,
                 {tokens, projects ? hidden_size
                                   : expected_axis{"projection_rows", problem.projection_rows()}});
  checker.tensor(
      out, problem.out,
      {tokens, projects ? hidden_size : expected_axis{"inner_size", problem.inner_size()}});
  checker.inner_stride(hidden);
  checker.inner_stride(out);
  checker.capacity("tokens", tokens.extent, "max_tokens", problem.max_tokens);

  expected_axis sequences{"sequences", tokens.extent};
  if (arguments.cu_seqlens) {
    checker.rank({"cu_seqlens", arguments.cu_seqlens}, 1, "(sequences + 1)");
    sequences.extent = arguments.cu_seqlens.extent(0) - 1;
    if (sequences.extent < 0) {
      checker.fail("cu_seqlens has shape (0); expected (sequences + 1), at least one entry");
    }
    checker.tensor({"cu_seqlens", arguments.cu_seqlens}, dtype::i32,
                   {{"sequences + 1", sequences.extent + 1}});
    if (where.kind == device_kind::host &&
        index_at(arguments.cu_seqlens, sequences.extent) != tokens.extent) {
      checker.fail(fmt::format("cu_seqlens[{}] = {}, but it must be the number of tokens, {}",
                               sequences.extent, index_at(arguments.cu_seqlens, sequences.extent),
                               tokens.extent));
    }
  }
  checker.capacity("sequences", sequences.extent, "max_sequences", problem.max_sequences);
  checker.tensor({"state_source", arguments.state_source}, dtype::i32, {sequences});
  checker.tensor({"state_target", arguments.state_target}, dtype::i32, {sequences});

  named_tensor const conv_states{"conv_states", arguments.conv_states};
  named_tensor const ssm_states{"ssm_states", arguments.ssm_states};
  checker.rank(conv_states, 3, "(slots, conv_channels, conv_width - 1)");
  checker.rank(ssm_states, 4, "(slots, nheads, headdim, dstate)");
  expected_axis const slots{"slots", arguments.conv_states.extent(0)};
  checker.tensor(conv_states, problem.io,
                 {slots,
                  {"conv_channels", problem.conv_channels()},
                  {"conv_width - 1", problem.conv_width - 1}});
  checker.tensor(ssm_states, problem.state,
                 {slots,
                  {"nheads", problem.nheads},
                  {"headdim", problem.headdim},
                  {"dstate", problem.dstate}});

  for (auto const& output : {out, conv_states, ssm_states}) {
    checker.distinct_elements(output);
    for (auto const& weight : all_weights(weights)) checker.disjoint(output, weight);
    for (auto const& input : {hidden, named_tensor{"cu_seqlens", arguments.cu_seqlens},
                              named_tensor{"state_source", arguments.state_source},
                              named_tensor{"state_target", arguments.state_target}}) {
      checker.disjoint(output, input);
    }
  }
  checker.disjoint(out, conv_states);
  checker.disjoint(out, ssm_states);
  checker.disjoint(conv_states, ssm_states);
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
