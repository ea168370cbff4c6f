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

constexpr std::int64_t width = 4;

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

bench_record start_record(layer_settings const& chosen, backend const& on, std::string name,
                          std::string const& shape, std::int64_t seqlen, int threads) {
  bench_record record;
  record.operator_name = std::move(name);
  record.backend = on.name();
  record.shape = shape;
  record.batch = chosen.batch;
  record.seqlen = seqlen;
  record.threads = threads;
  record.io = chosen.io;
  return record;
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
  auto const times = benchmark::time_interleaved(
      candidates, {.least_rounds = chosen.rounds, .most_rounds = chosen.rounds});
  record.ms = times[0].median;
  record.ms_min = times[0].minimum;
  record.peak_gbytes = 2e-6 * static_cast<double>(bytes_of_x) / times[1].median;
  if (peer) record.peers.push_back({"ggml", times[2].median, times[2].minimum});
}

bench_record bench_conv_cell(layer_settings const& chosen, std::string const& name,
                             std::int64_t seqlen, int threads) {
  auto const shape = layer_shape(name);
  auto const& on = host_backend(chosen);
  auto const channels = shape.nheads * shape.headdim + 2 * shape.ngroups * shape.dstate;
  auto const batch = chosen.batch;
  auto x = normal_tensor(chosen.io, {batch, seqlen, channels}, 1);
  auto weight = normal_tensor(dtype::f32, {channels, width}, 2);
  auto bias = normal_tensor(dtype::f32, {channels}, 3);
  auto states = normal_tensor(chosen.io, {batch, channels, width - 1}, 4);
  auto final_states = normal_tensor(chosen.io, {batch, channels, width - 1}, 5);
  auto out = normal_tensor(chosen.io, {batch, seqlen, channels}, 6);

  auto record = start_record(chosen, on, "conv", name, seqlen, threads);
  std::function<void()> call;
  auto const plan = [&](auto arguments, auto options) {
    arguments.x = x.view();
    arguments.weight = weight.view();
    arguments.bias = bias.view();
    arguments.initial_states = states.view();
    arguments.final_states = final_states.view();
    arguments.out = out.view();
    options.act = activation::silu;
    options.threads = threads;
    call = planned_call(on, make_problem(arguments, options), arguments, record);
  };
  if (seqlen == 1) {
    plan(conv1d_update_arguments{}, conv1d_update_options{});
  } else {
    plan(conv1d_arguments{}, conv1d_options{});
  }
  record.moved_bytes =
      static_cast<double>(x.bytes() + out.bytes() + states.bytes() + final_states.bytes());
  record.tensor_bytes = record.moved_bytes + static_cast<double>(weight.bytes() + bias.bytes());

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

bench_record bench_norm_cell(layer_settings const& chosen, std::string const& name,
                             std::int64_t seqlen, int threads) {
  auto const shape = layer_shape(name);
  auto const& on = host_backend(chosen);
  auto const channels = shape.nheads * shape.headdim;
  auto const rows = chosen.batch * seqlen;
  auto x = normal_tensor(chosen.io, {rows, channels}, 1);
  auto z = normal_tensor(chosen.io, {rows, channels}, 2);
  auto weight = normal_tensor(dtype::f32, {channels}, 3);
  auto out = normal_tensor(chosen.io, {rows, channels}, 4);

  auto record = start_record(chosen, on, "norm", name, seqlen, threads);
  gated_rms_norm_arguments arguments;
  arguments.x = x.view();
  arguments.z = z.view();
  arguments.weight = weight.view();
  arguments.out = out.view();
  auto const call = planned_call(
      on,
      make_problem(arguments, gated_rms_norm_options{.group_size = channels / shape.ngroups,
                                                     .threads = threads}),
      arguments, record);
  record.moved_bytes = static_cast<double>(x.bytes() + z.bytes() + out.bytes());
  record.tensor_bytes = record.moved_bytes + static_cast<double>(weight.bytes());
  time_record(chosen, call, static_cast<std::int64_t>(x.bytes()), {}, record);
  return record;
}

template <class Cell>
void bench_cells(layer_settings chosen, char const* what, Cell const& cell) {
  if (chosen.threads.empty()) chosen.threads.push_back(available_processors());
  progress shown(what, static_cast<std::int64_t>(chosen.shapes.size() * chosen.seqlens.size() *
                                                 chosen.threads.size()));
  std::vector<bench_record> records;
  for (auto const& shape : chosen.shapes) {
    for (auto const seqlen : chosen.seqlens) {
      for (auto const threads : chosen.threads) {
        records.push_back(cell(chosen, shape, seqlen, threads));
        if (chosen.json) print_json(records.back());
        shown.step();
      }
    }
  }
  if (chosen.json) return;
  print_table(records);
  fmt::print("Peak: a plain copy as large as x, in the same {} rounds. ms: median.\n",
             chosen.rounds);
}

template <class Cell>
void add_command(CLI::App& bench, char const* name, char const* help, char const* what,
                 Cell const& cell) {
  auto const chosen = std::make_shared<layer_settings>();
  auto* const command = bench.add_subcommand(name, help);
  add_layer_options(*command, *chosen);
  command->callback([chosen, what, cell] { bench_cells(*chosen, what, cell); });
}

}  // namespace

void add_bench_conv_command(CLI::App& bench) {
  add_command(bench, "conv", "Time the convolution with bias and silu; T = 1 is a decode step",
              "bench conv", bench_conv_cell);
}

void add_bench_norm_command(CLI::App& bench) {
  add_command(bench, "norm", "Time the gated norm", "bench norm", bench_norm_cell);
}

}  // namespace mambatile::program
