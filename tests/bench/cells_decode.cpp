#include <algorithm>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include <mambatile/state_update.hpp>

#include "benchmark/machine.hpp"
#include "cells.hpp"
#include "evaluation/scan_inputs.hpp"
#include "evaluation/tensor_error.hpp"

namespace mambatile::benchmark {
namespace {

using evaluation::compare;
using evaluation::host_tensor;
using evaluation::scan_inputs;
using evaluation::scan_shape;

void store(host_tensor& target, const_tensor_view const& source) {
  auto const* const values = static_cast<float const*>(source.data);
  auto const count = static_cast<std::size_t>(source.size());
  auto const total = static_cast<std::size_t>(target.view().size());
  switch (target.view().type) {
    case dtype::bf16:
      for (std::size_t i = 0; i < total; ++i) {
        target.elements<bfloat16>()[i] = bfloat16(values[i % count]);
      }
      return;
    case dtype::f16:
      for (std::size_t i = 0; i < total; ++i) {
        target.elements<float16>()[i] = float16(values[i % count]);
      }
      return;
    default:
      for (std::size_t i = 0; i < total; ++i) target.elements<float>()[i] = values[i % count];
  }
}

/// One token for each row of a batch, on the states of several layers in turn, updated in place.
class decode {
 public:
  decode(settings const& with, scan_shape const& shape, scan_inputs const& inputs, dtype state,
         std::int64_t layers, std::int64_t repeats, int threads)
      : repeats_(repeats) {
    auto const b = inputs.arguments.x.extent(0);
    auto const inner = shape.headdim * shape.dstate;
    states_ = host_tensor(state, {layers, b, shape.nheads, shape.headdim, shape.dstate});
    store(states_, inputs.initial_states.view());
    out_ = host_tensor(dtype::f32, {b, 1, shape.nheads, shape.headdim});

    auto const& from = inputs.arguments;
    state_update_arguments arguments;
    arguments.x = from.x;
    arguments.dt = from.dt;
    arguments.A = from.A;
    arguments.B = from.B;
    arguments.C = from.C;
    arguments.D = from.D;
    arguments.dt_bias = from.dt_bias;
    arguments.out = out_.view();
    auto* const data = static_cast<std::byte*>(states_.view().data);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      tensor_view view = states_.view();
      view.data =
          data + layer * b * shape.nheads * inner * static_cast<std::int64_t>(size_of(state));
      view.rank = 4;
      view.extents = {b, shape.nheads, shape.headdim, shape.dstate};
      bool const transposed =
          with.served_by->preferred_state_layout() == state_layout::headdim_innermost;
      view.strides = {shape.nheads * inner, inner, transposed ? 1 : shape.dstate,
                      transposed ? shape.headdim : 1};
      arguments.initial_states = view;
      arguments.final_states = view;
      layers_.push_back(arguments);
    }
    state_update_options options;
    options.dt_softplus = true;
    options.threads = threads;
    plan_.emplace(*with.served_by, make_problem(arguments, options), arguments);
  }
  decode(decode const&) = delete;
  decode& operator=(decode const&) = delete;

  void operator()() const {
    for (auto const& arguments : layers_) {
      for (std::int64_t repeat = 0; repeat < repeats_; ++repeat) (*plan_)(arguments);
    }
  }
  /// One layer, once.
  void run_layer(std::int64_t layer) const { (*plan_)(layers_[static_cast<std::size_t>(layer)]); }
  /// A layer's states of f32.
  [[nodiscard]] std::span<float> states(std::int64_t layer) const {
    auto const& view = layers_[static_cast<std::size_t>(layer)].final_states;
    return {static_cast<float*>(view.data), static_cast<std::size_t>(view.size())};
  }
  [[nodiscard]] state_update_arguments const& arguments() const noexcept { return layers_.front(); }
  [[nodiscard]] std::string description() const { return plan_->description(); }

 private:
  std::int64_t repeats_;
  host_tensor states_, out_;
  std::vector<state_update_arguments> layers_;
  std::optional<planned<state_update_problem>> plan_;
};

/// Inputs of one token; initial states as this backend likes them stored.
scan_inputs token_inputs(settings const& with, scan_shape const& shape, std::int64_t batch) {
  evaluation::scan_inputs_request request;
  request.shape = shape;
  request.batch = batch;
  request.seqlen = 1;
  request.layout = with.served_by->preferred_state_layout();
  return scan_inputs(request);
}

std::unique_ptr<peer_run> ggml_decode(scan_inputs const& inputs, std::int64_t layers,
                                      std::int64_t repeats, bool write_back, int threads) {
  auto const* const ggml = ggml_peer();
  if (ggml == nullptr) return nullptr;
  peer_scan_request request;
  request.arguments = inputs.arguments;
  request.threads = threads;
  request.layers = layers;
  request.repeats = repeats;
  request.write_back = write_back;
  return ggml->scan(request);
}

/// One call of each on the same state.
void check_against_ggml(settings const& with, scan_shape const& shape, scan_inputs const& inputs,
                        measurement& cell) {
  auto const theirs = ggml_decode(inputs, 1, 1, false, cell.threads);
  if (!theirs) return;
  decode const ours(with, shape, inputs, dtype::f32, 1, 1, cell.threads);
  ours();
  theirs->run();
  auto const b = inputs.arguments.x.extent(0);
  auto out = ours.arguments().out;
  out.rank = 4;
  auto const out_error = compare(out, theirs->out(), evaluation::out_slices);
  auto const state_error =
      compare(ours.arguments().final_states, theirs->final_states(), evaluation::state_slices);
  cell.ggml_difference = std::max(out_error.slice, state_error.slice);
  cell.numbers["batch"] = static_cast<double>(b);
  if (!out_error.finite || !state_error.finite || *cell.ggml_difference > 1e-4) {
    throw std::runtime_error(fmt::format("differs from ggml by {:.2g}", *cell.ggml_difference));
  }
}

timing per_call(timing taken, std::int64_t calls) {
  taken.minimum /= static_cast<double>(calls);
  taken.median /= static_cast<double>(calls);
  return taken;
}

double ratio(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : 0;
}

void measure_cold(settings const& with, scan_shape const& shape, std::int64_t batch, int threads,
                  report& to) {
  measurement cell{"decode, states from memory", fmt::format("{} B={}", shape.name, batch),
                   threads};
  auto const state_elements = batch * shape.nheads * shape.headdim * shape.dstate;
  // Twice the last cache level between two uses of the same f32 state; four times for 16 bits.
  auto const layers = std::max<std::int64_t>(
      4, static_cast<std::int64_t>(2 * last_level_cache_bytes()) / (4 * state_elements) + 1);
  double loop_ratio = 0;
  double bare_with_copy = 0;
  std::map<std::string, double> half_ms;
  try {
    auto const inputs = token_inputs(with, shape, batch);
    check_against_ggml(with, shape, inputs, cell);
    decode const ours(with, shape, inputs, dtype::f32, layers, 1, threads);
    decode const ours_bf16(with, shape, inputs, dtype::bf16, 2 * layers, 1, threads);
    decode const ours_f16(with, shape, inputs, dtype::f16, 2 * layers, 1, threads);
    auto const bare = ggml_decode(inputs, layers, 1, false, threads);
    auto const copied = ggml_decode(inputs, layers, 1, true, threads);

    // The loop works on the same states, half of all layers behind: both meet each layer's cold.
    auto how = with.timing();
    auto const beside_loop =
        time_in_turn({[&](std::int64_t layer) { ours.run_layer(layer); },
                      [&](std::int64_t layer) {
                        update_in_place(ours.states((layer + layers / 2) % layers), threads);
                      }},
                     layers, how);
    loop_ratio = median_ratio(beside_loop[1], beside_loop[0]);

    std::vector<std::function<void()>> candidates = {[&] { ours(); }, [&] { ours_bf16(); },
                                                     [&] { ours_f16(); }};
    if (bare) {
      candidates.push_back([&] { bare->run(); });
      candidates.push_back([&] { copied->run(); });
    }
    how.seconds *= 2;  // five candidates, long ones
    auto const times = time_interleaved(candidates, how);
    cell.words["plan"] = ours.description();
    cell.words["plan_f16"] = ours_f16.description();
    cell.ours = per_call(times[0], layers);
    half_ms["bf16"] = times[1].minimum / static_cast<double>(2 * layers);
    half_ms["f16"] = times[2].minimum / static_cast<double>(2 * layers);
    if (bare) {
      cell.ggml = per_call(times[3], layers);
      bare_with_copy = times[4].minimum / static_cast<double>(layers);
    }
    auto const bytes = 8.0 * static_cast<double>(state_elements);
    cell.words["shape"] = shape.name;
    cell.numbers["layers"] = static_cast<double>(layers);
    cell.numbers["bytes"] = bytes;
    cell.numbers["flops"] = 4.0 * static_cast<double>(state_elements);
    cell.numbers["gbytes_per_second"] = bytes / cell.ours->minimum * 1e-6;
    cell.numbers["gflops"] = cell.numbers["flops"] / cell.ours->minimum * 1e-6;
    cell.numbers["in_place_ms"] = beside_loop[1].median;
    cell.numbers["beside_in_place_ms"] = beside_loop[0].median;
    cell.numbers["ggml_copy_back_ms"] = bare_with_copy;
    cell.numbers["bf16_ms"] = half_ms["bf16"];
    cell.numbers["f16_ms"] = half_ms["f16"];
    cell.numbers["ggml_copy_back_ratio"] = bare_with_copy / cell.ours->minimum;
  } catch (std::exception const& error) {
    cell.ours.reset();
    loop_ratio = 0;
    cell.problem = error.what();
  }
  double const ms = cell.ours ? cell.ours->minimum : 0;
  double const ggml_ms = cell.ggml ? cell.ggml->minimum : 0;
  cell.figures.push_back({"rate over plain in-place loop's", loop_ratio, 0.95});
  cell.figures.push_back(ggml_ratio(cell, threads > 1 ? 1.4 : 1.3));
  if (batch > 1) {
    cell.figures.push_back({"... with ggml's copy-back", ratio(bare_with_copy, ms), 2.5});
  }
  for (auto const* type : {"bf16", "f16"}) {
    cell.figures.push_back(
        {fmt::format("{} state over ggml's f32", type), ratio(ggml_ms, half_ms[type]), 1.9});
  }
  to.add(cell);
}

void measure_hot(settings const& with, scan_shape const& shape, int threads, report& to) {
  constexpr std::int64_t repeats = 8;
  measurement cell{"decode, states in cache", fmt::format("{} B=1", shape.name), threads};
  try {
    auto const inputs = token_inputs(with, shape, 1);
    check_against_ggml(with, shape, inputs, cell);
    decode const ours(with, shape, inputs, dtype::f32, 1, repeats, threads);
    auto const bare = ggml_decode(inputs, 1, repeats, false, threads);
    std::vector<std::function<void()>> candidates = {[&] { ours(); }};
    if (bare) candidates.push_back([&] { bare->run(); });
    auto const times = time_interleaved(candidates, with.timing());
    cell.words["plan"] = ours.description();
    cell.ours = per_call(times[0], repeats);
    if (bare) cell.ggml = per_call(times[1], repeats);
  } catch (std::exception const& error) {
    cell.ours.reset();
    cell.problem = error.what();
  }
  cell.figures.push_back(ggml_ratio(cell, 1.35));
  to.add(cell);
}

}  // namespace

void measure_decode(settings const& with, report& to) {
  for (auto const& shape : model_shapes(with)) {
    for (std::int64_t const batch : {1, 16}) {
      for (int const threads : with.threads) measure_cold(with, shape, batch, threads, to);
    }
  }
  for (auto const& shape : model_shapes(with)) {
    for (int const threads : with.threads) measure_hot(with, shape, threads, to);
  }
}

// One packed call with a long prompt and many single tokens, against the two on their own.
void measure_mixed(settings const& with, report& to) {
  auto const shape = *evaluation::find_scan_shape("mamba2-130m");
  if (!with.wants(shape.name)) return;
  constexpr std::int64_t prompt = 2048;
  constexpr std::int64_t rows = 256;
  for (int const threads : with.threads) {
    measurement cell{"mixed batch", "mamba2-130m, 2048 + 256 x 1", threads};
    double value = 0;
    try {
      evaluation::scan_inputs_request request;
      request.shape = shape;
      request.seqlen = prompt + rows;
      request.with_initial_states = false;
      scan_inputs const inputs(request);
      host_tensor states(dtype::f32, {rows + 1, shape.nheads, shape.headdim, shape.dstate});
      std::ranges::fill(states.elements<float>(), 0.5F);
      host_tensor out(dtype::f32, {1, prompt + rows, shape.nheads, shape.headdim});
      std::vector<std::int32_t> cu_seqlens = {0};
      for (std::int64_t i = 0; i <= rows; ++i) {
        cu_seqlens.push_back(static_cast<std::int32_t>(prompt + i));
      }
      auto options = inputs.options;
      options.threads = threads;

      auto mixed = inputs.arguments;
      mixed.cu_seqlens = make_view(static_cast<std::int32_t const*>(cu_seqlens.data()), {rows + 2});
      mixed.initial_states = preferred_states(*with.served_by, states);
      mixed.final_states = preferred_states(*with.served_by, states);
      mixed.out = out.view();
      planned<scan_problem> const mixed_plan(*with.served_by, make_problem(mixed, options), mixed);

      auto const first = [](const_tensor_view view, std::int64_t tokens) {
        view.extents[1] = tokens;
        return view;
      };
      auto alone = inputs.arguments;
      alone.x = first(alone.x, prompt);
      alone.dt = first(alone.dt, prompt);
      alone.B = first(alone.B, prompt);
      alone.C = first(alone.C, prompt);
      alone.out = out.view();
      alone.out.extents[1] = prompt;
      alone.final_states = preferred_states(*with.served_by, states);
      alone.final_states.extents[0] = 1;
      alone.initial_states = alone.final_states;
      planned<scan_problem> const prompt_plan(*with.served_by, make_problem(alone, options), alone);

      auto const batched = [](auto view, std::int64_t skip) {
        // Tokens of one row become rows of one token.
        auto const size = static_cast<std::int64_t>(size_of(view.type));
        using pointer = decltype(view.data);
        auto const address = reinterpret_cast<std::uintptr_t>(view.data) +
                             static_cast<std::uintptr_t>(skip * view.stride(1) * size);
        view.data = reinterpret_cast<pointer>(address);
        view.extents[0] = view.extents[1] - skip;
        view.extents[1] = 1;
        view.strides[0] = view.strides[1];
        return view;
      };
      state_update_arguments tokens;
      tokens.x = batched(inputs.arguments.x, prompt);
      tokens.dt = batched(inputs.arguments.dt, prompt);
      tokens.B = batched(inputs.arguments.B, prompt);
      tokens.C = batched(inputs.arguments.C, prompt);
      tokens.A = inputs.arguments.A;
      tokens.D = inputs.arguments.D;
      tokens.dt_bias = inputs.arguments.dt_bias;
      tokens.out = batched(out.view(), prompt);
      auto row_states = preferred_states(*with.served_by, states);
      row_states.data = static_cast<float*>(row_states.data) + row_states.stride(0);
      row_states.extents[0] = rows;
      tokens.initial_states = row_states;
      tokens.final_states = row_states;
      state_update_options update_options;
      update_options.dt_softplus = true;
      update_options.threads = threads;
      planned<state_update_problem> const tokens_plan(*with.served_by,
                                                      make_problem(tokens, update_options), tokens);

      auto const times = time_interleaved(
          {[&] { mixed_plan(); }, [&] { prompt_plan(); }, [&] { tokens_plan(); }}, with.timing());
      cell.ours = times[0];
      cell.words["plan"] = mixed_plan.description();
      cell.numbers["prompt_ms"] = times[1].minimum;
      cell.numbers["tokens_ms"] = times[2].minimum;
      auto alone_times = times[1];
      for (std::size_t round = 0; round < alone_times.samples.size(); ++round) {
        alone_times.samples[round] += times[2].samples[round];
      }
      value = median_ratio(times[0], alone_times);
    } catch (std::exception const& error) {
      cell.ours.reset();
      cell.problem = error.what();
    }
    cell.figures.push_back({"time over the two alone", value, 1.5, true});
    to.add(cell);
  }
}

}  // namespace mambatile::benchmark
