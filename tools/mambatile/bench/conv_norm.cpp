#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <mambatile/conv1d.hpp>
#include <mambatile/norm.hpp>

#include "bench/bench.hpp"
#include "bench/layer_settings.hpp"
#include "bench/record.hpp"
#include "benchmark/interleaved.hpp"
#include "benchmark/machine.hpp"
#include "benchmark/peer.hpp"
#include "evaluation/host_tensor.hpp"
#include "options.hpp"
#include "text.hpp"

// mambatile bench conv, mambatile bench norm: the operators around the scan, whose roof is memory.
// A plain copy of x to out, timed in the same rounds, says how fast that is.

namespace mambatile::program {
namespace {

using evaluation::host_tensor;

host_tensor normal_tensor(dtype type, std::initializer_list<std::int64_t> shape, unsigned seed) {
  host_tensor tensor(type, shape);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  auto const fill = [&](auto elements) {
    for (auto& value : elements) value = std::decay_t<decltype(value)>(normal(random));
  };
  switch (type) {
    case dtype::bf16: fill(tensor.elements<bfloat16>()); break;
    case dtype::f16: fill(tensor.elements<float16>()); break;
    default: fill(tensor.elements<float>()); break;
  }
  return tensor;
}

// An operator planned for a call, with what it needs.
template <class Problem>
std::function<void()> planned_call(backend const& on, Problem const& problem,
                                   typename Problem::arguments_type const& arguments,
                                   bench_record& record) {
  auto const plan = on.plan(problem);
  record.plan = plan.description();
  record.threads = threads_of(plan, record.threads);
  record.workspace_bytes = plan.workspace_bytes();
  auto const memory =
      std::make_shared<buffer>(on.allocate({}, std::max<std::size_t>(plan.workspace_bytes(), 1)));
  return [plan, arguments, memory] { plan.execute(arguments, memory->workspace()); };
}

// Times the operator, the copy of as many bytes as x has, and a peer where there is one.
void time_record(layer_settings const& chosen, std::function<void()> const& call,
                 std::int64_t bytes_of_x, std::function<void()> const& peer, bench_record& record) {
  auto const floats = std::max<std::int64_t>(bytes_of_x / 4, 1);
  host_tensor source(dtype::f32, {floats});
  host_tensor target(dtype::f32, {floats});
  std::ranges::fill(source.elements<float>(), 1.0F);
  std::ranges::fill(target.elements<float>(), 0.0F);
  std::vector<std::function<void()>> candidates = {
      call, [&] {
        benchmark::copy_plainly(source.elements<float>(), target.elements<float>(), record.threads);
      }};
  if (peer) candidates.push_back(peer);
  auto const times = benchmark::time_interleaved(candidates, chosen.timing());
  record.ms = times[0].median;
  record.ms_min = times[0].minimum;
  // The copy moves 2 x bytes_of_x.
  record.fraction_of_peak = benchmark::median_ratio(times[1], times[0]) * record.moved_bytes /
                            (2 * static_cast<double>(bytes_of_x));
  if (peer) {
    record.peers.push_back(
        {"ggml", times[2].median, times[2].minimum, benchmark::median_ratio(times[2], times[0])});
  }
}

struct conv_settings : layer_settings {
  std::int64_t width = 4;
};

bench_record bench_conv_cell(conv_settings const& chosen, layer_cell const& cell) {
  auto const& on = host_backend(chosen);
  auto const& shape = cell.shape;
  auto const channels = shape.nheads * shape.headdim + 2 * shape.ngroups * shape.dstate;
  auto const batch = cell.batch;
  auto const width = chosen.width;
  auto x = normal_tensor(chosen.io, {batch, cell.seqlen, channels}, 1);
  auto weight = normal_tensor(dtype::f32, {channels, width}, 2);
  auto bias = normal_tensor(dtype::f32, {channels}, 3);
  auto states = normal_tensor(chosen.io, {batch, channels, width - 1}, 4);
  auto final_states = normal_tensor(chosen.io, {batch, channels, width - 1}, 5);
  auto out = normal_tensor(chosen.io, {batch, cell.seqlen, channels}, 6);

  bool const is_step = cell.seqlen == 1;
  auto record = start_record(
      chosen, on, is_step ? conv1d_update_problem::operator_name : conv1d_problem::operator_name,
      cell);
  std::function<void()> call;
  auto const plan = [&](auto arguments, auto options) {
    arguments.x = x.view();
    arguments.weight = weight.view();
    arguments.bias = bias.view();
    arguments.initial_states = states.view();
    arguments.final_states = final_states.view();
    arguments.out = out.view();
    options.act = activation::silu;
    options.threads = cell.threads;
    call = planned_call(on, make_problem(arguments, options), arguments, record);
  };
  if (is_step) {
    plan(conv1d_update_arguments{}, conv1d_update_options{});
  } else {
    plan(conv1d_arguments{}, conv1d_options{});
  }
  record.moved_bytes = static_cast<double>(x.bytes() + out.bytes() + states.bytes() +
                                           final_states.bytes() + weight.bytes() + bias.bytes());
  record.tensor_bytes = record.moved_bytes;

  std::unique_ptr<benchmark::peer_run> theirs;
  std::function<void()> peer;
  if (auto const* const ggml = benchmark::ggml_peer(); ggml != nullptr && chosen.io == dtype::f32) {
    theirs = ggml->conv1d({.x = x.view(),
                           .weight = weight.view(),
                           .bias = bias.view(),
                           .initial_states = states.view(),
                           .threads = record.threads});
    peer = [&] { theirs->run(); };
  }
  time_record(chosen, call, static_cast<std::int64_t>(x.bytes()), peer, record);
  return record;
}

struct norm_settings : layer_settings {
  bool norm_before_gate = false;
  bool without_gate = false;
};

bench_record bench_norm_cell(norm_settings const& chosen, layer_cell const& cell) {
  auto const& on = host_backend(chosen);
  auto const channels = cell.shape.nheads * cell.shape.headdim;
  auto const rows = cell.batch * cell.seqlen;
  auto x = normal_tensor(chosen.io, {rows, channels}, 1);
  auto z = normal_tensor(chosen.io, {rows, channels}, 2);
  auto weight = normal_tensor(dtype::f32, {channels}, 3);
  auto out = normal_tensor(chosen.io, {rows, channels}, 4);

  auto record = start_record(chosen, on, gated_rms_norm_problem::operator_name, cell);
  gated_rms_norm_arguments arguments;
  arguments.x = x.view();
  if (!chosen.without_gate) arguments.z = z.view();
  arguments.weight = weight.view();
  arguments.out = out.view();
  gated_rms_norm_options options;
  options.group_size = channels / cell.shape.ngroups;
  options.norm_before_gate = chosen.norm_before_gate;
  options.threads = cell.threads;
  auto const call = planned_call(on, make_problem(arguments, options), arguments, record);
  record.moved_bytes = static_cast<double>(x.bytes() + out.bytes() + weight.bytes()) +
                       (chosen.without_gate ? 0.0 : static_cast<double>(z.bytes()));
  record.tensor_bytes = record.moved_bytes;
  time_record(chosen, call, static_cast<std::int64_t>(x.bytes()), {}, record);
  return record;
}

// A subcommand with the options that these operators share.
template <class Settings>
CLI::App* add_command(CLI::App& bench, char const* name, char const* help,
                      std::shared_ptr<Settings> const& chosen,
                      bench_record (*time_cell)(Settings const&, layer_cell const&)) {
  chosen->seqlens = {2048};
  auto* const command = bench.add_subcommand(name, help);
  add_layer_options(*command, *chosen);
  command->add_option("--seqlen", chosen->seqlens, "Tokens a row (default: 2048)")
      ->delimiter(',')
      ->check(at_least(1))
      ->type_name("T,...");
  add_dtype_option(*command, "--io", "Type of activations (default: f32)",
                   [chosen](dtype type) { chosen->io = type; });
  std::string const what = std::string("bench ") + name;
  command->callback([chosen, what, time_cell] {
    bench_layers(*chosen, what.c_str(), "Peak: a plain copy as large as x, in the same rounds.",
                 [&](layer_cell const& cell) { return time_cell(*chosen, cell); });
  });
  return command;
}

}  // namespace

void add_bench_conv_command(CLI::App& bench) {
  auto const chosen = std::make_shared<conv_settings>();
  auto* const command =
      add_command(bench, "conv", "Time the convolution with bias and silu; T = 1 is a decode step",
                  chosen, bench_conv_cell);
  command->add_option("--width", chosen->width, "Taps (default: 4)")
      ->check(at_least(1))
      ->type_name("W");
}

void add_bench_norm_command(CLI::App& bench) {
  auto const chosen = std::make_shared<norm_settings>();
  auto* const command = add_command(
      bench, "norm", "Time the gated norm, in the groups of the shape", chosen, bench_norm_cell);
  command->add_flag("--norm-before-gate", chosen->norm_before_gate, "Norm first, then gate");
  command->add_flag("--no-gate", chosen->without_gate, "Norm alone");
}

}  // namespace mambatile::program
