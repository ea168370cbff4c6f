#include <mambatile/mixer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/conv1d.hpp>
#include <mambatile/matmul.hpp>
#include <mambatile/norm.hpp>
#include <mambatile/scan.hpp>
#include <mambatile/state_update.hpp>

#include "model/mixer_checks.hpp"
#include "workspace_layout.hpp"

namespace mambatile {
inline namespace v0 {
namespace {

// Columns [begin, begin + count) of a (rows, pitch) buffer, with their axes split as `shape` says.
// The result is (1, rows, shape...).
template <class Void>
basic_tensor_view<Void> columns(basic_tensor_view<Void> buffer, std::int64_t begin,
                                std::initializer_list<std::int64_t> shape) {
  auto view = buffer;
  auto const pitch = buffer.stride(0);
  if (view.data != nullptr) {
    view.data =
        static_cast<std::conditional_t<std::is_const_v<Void>, char const, char>*>(buffer.data) +
        begin * static_cast<std::int64_t>(size_of(buffer.type));
  }
  view.rank = 2;
  view.extents = {1, buffer.extent(0)};
  view.strides = {buffer.extent(0) * pitch, pitch};
  std::int64_t stride = 1;
  for (auto extent : shape) stride *= extent;
  for (auto extent : shape) {
    stride = extent == 0 ? 0 : stride / extent;
    view.extents[static_cast<std::size_t>(view.rank)] = extent;
    view.strides[static_cast<std::size_t>(view.rank++)] = stride;
  }
  return view;
}

// Drops the leading axis of extent 1.
template <class Void>
basic_tensor_view<Void> rows_of(basic_tensor_view<Void> view) {
  std::copy(view.extents.begin() + 1, view.extents.end(), view.extents.begin());
  std::copy(view.strides.begin() + 1, view.strides.end(), view.strides.begin());
  --view.rank;
  return view;
}

// Swaps the first two axes: (1, t, ...) of one packed row into (t, 1, ...) of t rows with a token
// each.
template <class Void>
basic_tensor_view<Void> tokens_as_rows(basic_tensor_view<Void> view) {
  std::swap(view.extents[0], view.extents[1]);
  std::swap(view.strides[0], view.strides[1]);
  return view;
}

tensor_view packed(void* data, dtype type, device where, std::int64_t rows, std::int64_t length) {
  tensor_view view;
  view.data = data;
  view.type = type;
  view.where = where;
  view.rank = 2;
  view.extents = {rows, length};
  view.strides = {length, 1};
  return view;
}

// What the convolution over sequences and its update have in common.
template <class Problem>
Problem convolution_problem(mixer_problem const& problem) {
  Problem conv;
  conv.channels = problem.conv_channels();
  conv.width = problem.conv_width;
  conv.state_len = problem.conv_width - 1;
  conv.io = problem.io;
  conv.weight = problem.conv;
  conv.bias = problem.conv;
  conv.state = problem.io;
  conv.act = activation::silu;
  conv.has_bias = problem.has_conv_bias;
  bool const has_states = problem.conv_width > 1;
  conv.has_initial_states = has_states;
  conv.has_final_states = has_states;
  conv.has_state_source = has_states;
  conv.has_state_target = has_states;
  conv.threads = problem.threads;
  return conv;
}

conv1d_problem conv_problem(mixer_problem const& problem) {
  auto conv = convolution_problem<conv1d_problem>(problem);
  conv.max_batch = 1;
  conv.max_seqlen = problem.max_tokens;
  conv.max_sequences = problem.max_sequences;
  conv.pack = packing::cu_seqlens;
  return conv;
}

conv1d_update_problem conv_update_problem(mixer_problem const& problem) {
  auto conv = convolution_problem<conv1d_update_problem>(problem);
  conv.max_batch = problem.max_sequences;
  conv.max_seqlen = 1;
  return conv;
}

// What the scan and the update have in common.
template <class Problem>
Problem recurrence_problem(mixer_problem const& problem) {
  Problem scan;
  scan.nheads = problem.nheads;
  scan.headdim = problem.headdim;
  scan.ngroups = problem.ngroups;
  scan.dstate = problem.dstate;
  scan.io = problem.io;
  scan.dt = problem.io;
  scan.state = problem.state;
  scan.dt_softplus = true;
  scan.dt_limit = problem.dt_limit;
  scan.D = problem.D;
  scan.has_z = !problem.gated_norm;
  scan.has_dt_bias = true;
  scan.has_initial_states = true;
  scan.has_final_states = true;
  scan.has_state_source = true;
  scan.has_state_target = true;
  scan.threads = problem.threads;
  return scan;
}

scan_problem prefill_problem(mixer_problem const& problem) {
  auto scan = recurrence_problem<scan_problem>(problem);
  scan.max_batch = 1;
  scan.max_seqlen = problem.max_tokens;
  scan.max_sequences = problem.max_sequences;
  scan.pack = packing::cu_seqlens;
  scan.chunk_size = problem.chunk_size;
  return scan;
}

state_update_problem decode_problem(mixer_problem const& problem) {
  auto update = recurrence_problem<state_update_problem>(problem);
  update.max_batch = problem.max_sequences;
  update.max_seqlen = 1;
  return update;
}

gated_rms_norm_problem norm_problem(mixer_problem const& problem) {
  gated_rms_norm_problem norm;
  norm.max_rows = problem.max_tokens;
  norm.channels = problem.inner_size();
  norm.group_size = problem.norm_group_size;
  norm.io = problem.io;
  norm.weight = problem.norm;
  norm.eps = problem.norm_eps;
  norm.norm_before_gate = problem.norm_before_gate;
  norm.has_z = true;
  norm.threads = problem.threads;
  return norm;
}

matmul_problem projection_problem(mixer_problem const& problem, bool input) {
  matmul_problem product;
  product.max_rows = problem.max_tokens;
  product.in_features = input ? problem.hidden_size : problem.inner_size();
  product.out_features = input ? problem.projection_rows() : problem.hidden_size;
  product.x = input ? problem.hidden : problem.io;
  product.weight = problem.projection;
  product.bias = problem.projection_bias;
  product.out = input ? problem.io : problem.out;
  product.has_bias = problem.has_projection_bias;
  product.has_column_scale = input && problem.has_column_scale;
  product.input_scale = input ? problem.input_scale : 1.0F;
  product.accumulate = !input && problem.accumulate;
  product.threads = problem.threads;
  return product;
}

}  // namespace

struct mixer::storage {
  mixer_problem problem;
  device where;
  std::optional<matmul_plan> input_projection;
  conv1d_plan conv;
  conv1d_update_plan conv_update;
  scan_plan scan;
  state_update_plan update;
  std::optional<gated_rms_norm_plan> norm;
  std::optional<matmul_plan> output_projection;

  detail::workspace_layout layout;
  std::size_t projected_at = 0;  // zxBCdt (max_tokens, projection_rows)
  std::size_t conv_out_at = 0;   // x, B, C after the convolution (max_tokens, conv_channels)
  std::size_t scanned_at = 0;    // y (max_tokens, inner_size)
  std::size_t operators_at = 0;  // one operator's workspace at a time
  std::size_t operators_bytes = 0;

  storage(backend const& served_by, device on, mixer_problem const& asked)
      : problem(asked),
        where(on),
        conv(served_by.plan(conv_problem(asked), on)),
        conv_update(served_by.plan(conv_update_problem(asked), on)),
        scan(served_by.plan(prefill_problem(asked), on)),
        update(served_by.plan(decode_problem(asked), on)) {
    if (problem.has_projections) {
      input_projection = served_by.plan(projection_problem(problem, true), on);
      output_projection = served_by.plan(projection_problem(problem, false), on);
    }
    if (problem.gated_norm) norm = served_by.plan(norm_problem(problem), on);
    book();
  }

  void book() {
    auto const element = size_of(problem.io);
    auto const rows = static_cast<std::size_t>(problem.max_tokens);
    auto const matrix = [&](std::int64_t row_length) {
      return layout.book(rows * static_cast<std::size_t>(row_length) * element);
    };
    if (problem.has_projections) projected_at = matrix(problem.projection_rows());
    conv_out_at = matrix(problem.conv_channels());
    scanned_at = matrix(problem.inner_size());
    operators_bytes =
        std::max({conv.workspace_bytes(), conv_update.workspace_bytes(), scan.workspace_bytes(),
                  update.workspace_bytes(), norm ? norm->workspace_bytes() : 0,
                  input_projection ? input_projection->workspace_bytes() : 0,
                  output_projection ? output_projection->workspace_bytes() : 0});
    operators_at = layout.book(operators_bytes);
  }
};

mixer::mixer(backend const& served_by, device where, mixer_problem const& problem) {
  detail::validate(problem);
  storage_ = std::make_shared<storage const>(served_by, where, problem);
}

mixer_problem const& mixer::problem() const noexcept { return storage_->problem; }
std::size_t mixer::workspace_bytes() const noexcept { return storage_->layout.bytes(); }

std::string mixer::description() const {
  std::string text;
  auto const add = [&](auto const& plan) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", plan.problem().operator_name,
                        plan.description());
  };
  if (storage_->input_projection) add(*storage_->input_projection);
  add(storage_->conv);
  add(storage_->conv_update);
  add(storage_->scan);
  add(storage_->update);
  if (storage_->norm) add(*storage_->norm);
  if (storage_->output_projection) add(*storage_->output_projection);
  return text;
}

void mixer::execute(mixer_weights const& weights, mixer_arguments const& arguments,
                    workspace_view workspace, queue on) const {
  auto const& at = *storage_;
  auto const& problem = at.problem;
  detail::check(problem, weights, arguments, at.where, workspace, workspace_bytes());

  auto const tokens = arguments.hidden.extent(0);
  auto const inner = problem.inner_size();
  auto const heads = problem.nheads;
  auto const groups = problem.ngroups;
  auto const dstate = problem.dstate;
  workspace_view const scratch{detail::piece_at(workspace, at.operators_at), at.operators_bytes,
                               at.where};

  const_tensor_view zxBCdt = arguments.hidden;
  if (problem.has_projections) {
    auto const projected = packed(detail::piece_at(workspace, at.projected_at), problem.io,
                                  at.where, tokens, problem.projection_rows());
    at.input_projection->execute({.x = arguments.hidden,
                                  .weight = weights.input_projection,
                                  .bias = weights.input_bias,
                                  .column_scale = weights.column_scale,
                                  .out = projected},
                                 scratch, on);
    zxBCdt = projected;
  }
  auto const z = columns(zxBCdt, 0, {heads, problem.headdim});
  auto const raw = columns(zxBCdt, inner, {problem.conv_channels()});
  auto const dt = columns(zxBCdt, inner + problem.conv_channels(), {heads});

  auto const conv_out = packed(detail::piece_at(workspace, at.conv_out_at), problem.io, at.where,
                               tokens, problem.conv_channels());
  auto const activated = columns(conv_out, 0, {problem.conv_channels()});
  auto const x = columns(const_tensor_view(conv_out), 0, {heads, problem.headdim});
  auto const B = columns(const_tensor_view(conv_out), inner, {groups, dstate});
  auto const C = columns(const_tensor_view(conv_out), inner + groups * dstate, {groups, dstate});
  auto const scanned =
      packed(detail::piece_at(workspace, at.scanned_at), problem.io, at.where, tokens, inner);
  // Without a norm, the scan's gated output is the result.
  auto const y = columns(problem.has_projections || problem.gated_norm ? scanned : arguments.out, 0,
                         {heads, problem.headdim});

  // A convolution of width 1 has no state.
  bool const conv_has_states = problem.conv_width > 1;
  auto const conv_states = conv_has_states ? arguments.conv_states : tensor_view{};
  auto const conv_source = conv_has_states ? arguments.state_source : const_tensor_view{};
  auto const conv_target = conv_has_states ? arguments.state_target : const_tensor_view{};

  if (arguments.cu_seqlens) {
    at.conv.execute({.x = raw,
                     .weight = weights.conv_weight,
                     .bias = weights.conv_bias,
                     .initial_states = conv_states,
                     .cu_seqlens = arguments.cu_seqlens,
                     .state_source = conv_source,
                     .state_target = conv_target,
                     .out = activated,
                     .final_states = conv_states},
                    scratch, on);
    at.scan.execute({.x = x,
                     .dt = dt,
                     .A = weights.A,
                     .B = B,
                     .C = C,
                     .D = weights.D,
                     .z = problem.gated_norm ? const_tensor_view{} : z,
                     .dt_bias = weights.dt_bias,
                     .initial_states = arguments.ssm_states,
                     .cu_seqlens = arguments.cu_seqlens,
                     .state_source = arguments.state_source,
                     .state_target = arguments.state_target,
                     .out = y,
                     .final_states = arguments.ssm_states},
                    scratch, on);
  } else {
    at.conv_update.execute({.x = tokens_as_rows(raw),
                            .weight = weights.conv_weight,
                            .bias = weights.conv_bias,
                            .initial_states = conv_states,
                            .state_source = conv_source,
                            .state_target = conv_target,
                            .out = tokens_as_rows(activated),
                            .final_states = conv_states},
                           scratch, on);
    at.update.execute(
        {.x = tokens_as_rows(x),
         .dt = tokens_as_rows(dt),
         .A = weights.A,
         .B = tokens_as_rows(B),
         .C = tokens_as_rows(C),
         .D = weights.D,
         .z = problem.gated_norm ? const_tensor_view{} : const_tensor_view(tokens_as_rows(z)),
         .dt_bias = weights.dt_bias,
         .initial_states = arguments.ssm_states,
         .state_source = arguments.state_source,
         .state_target = arguments.state_target,
         .out = tokens_as_rows(y),
         .final_states = arguments.ssm_states},
        scratch, on);
  }

  const_tensor_view result = scanned;
  if (problem.gated_norm) {
    // x after the convolution is no longer needed: its columns take the normed rows.
    auto const normed =
        problem.has_projections ? rows_of(columns(conv_out, 0, {inner})) : arguments.out;
    at.norm->execute({.x = scanned,
                      .z = rows_of(columns(zxBCdt, 0, {inner})),
                      .weight = weights.norm_weight,
                      .out = normed},
                     scratch, on);
    result = normed;
  }
  if (problem.has_projections) {
    at.output_projection->execute({.x = result,
                                   .weight = weights.output_projection,
                                   .bias = weights.output_bias,
                                   .out = arguments.out},
                                  scratch, on);
  }
}

}  // namespace v0
}  // namespace mambatile
