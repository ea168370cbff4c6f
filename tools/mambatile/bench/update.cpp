#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <mambatile/mambatile.hpp>

#include "bench/bench.hpp"
#include "bench/layer_settings.hpp"
#include "bench/record.hpp"
#include "benchmark/device_timing.hpp"
#include "benchmark/interleaved.hpp"
#include "benchmark/machine.hpp"
#include "benchmark/peer.hpp"
#include "device_tensor.hpp"
#include "evaluation/host_tensor.hpp"
#include "evaluation/scan_inputs.hpp"
#include "options.hpp"

// mambatile bench update

namespace mambatile::program {
namespace {

struct settings : layer_settings {
  dtype state = dtype::f32;
  bool hot = false;
};

std::size_t state_bytes_of(settings const& chosen, layer_cell const& cell) {
  auto const& shape = cell.shape;
  return static_cast<std::size_t>(cell.batch * shape.nheads * shape.headdim * shape.dstate) *
         size_of(chosen.state);
}

// One call on each of some layers' states, in turn: a state is out of the caches when its turn
// comes again, unless there is one layer alone.
class layered_update {
 public:
  layered_update(backend const& on, settings const& chosen, layer_cell const& cell,
                 std::int64_t layers)
      : backend_(on),
        queue_{{on.kind(), 0}},
        tensors_(on, queue_),
        inputs_({.shape = cell.shape,
                 .batch = cell.batch,
                 .seqlen = cell.seqlen,
                 .io = chosen.io,
                 .with_initial_states = false}),
        out_(chosen.io, {cell.batch, cell.seqlen, cell.shape.nheads, cell.shape.headdim}),
        state_bytes_(state_bytes_of(chosen, cell)),
        states_(chosen.state,
                {layers, cell.batch, cell.shape.nheads, cell.shape.headdim, cell.shape.dstate}) {
    auto const& shape = cell.shape;
    std::fill_n(static_cast<char*>(states_.view().data), states_.bytes(), '\0');
    state_update_arguments call;
    auto const& from = inputs_.arguments;
    call.x = tensors_.input(from.x);
    call.dt = tensors_.input(from.dt);
    call.A = tensors_.input(from.A);
    call.B = tensors_.input(from.B);
    call.C = tensors_.input(from.C);
    call.D = tensors_.input(from.D);
    call.dt_bias = tensors_.input(from.dt_bias);
    call.out = tensors_.output(out_.view());
    auto state = tensors_.output(states_.view());
    state.rank = 4;
    bool const by_channel = on.preferred_state_layout() == state_layout::headdim_innermost;
    auto const inner = shape.headdim * shape.dstate;
    state.extents = {cell.batch, shape.nheads, shape.headdim, shape.dstate};
    state.strides = {shape.nheads * inner, inner, by_channel ? 1 : shape.dstate,
                     by_channel ? shape.headdim : 1};
    auto* const data = static_cast<std::byte*>(state.data);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      state.data = data + static_cast<std::size_t>(layer) * state_bytes_;
      call.initial_states = call.final_states = state;
      calls_.push_back(call);
    }
    plan_ = std::make_unique<state_update_plan>(
        on.plan(make_problem(call, {.dt_softplus = true, .threads = cell.threads}), queue_.where));
    workspace_ = on.allocate(queue_.where, std::max<std::size_t>(plan_->workspace_bytes(), 1));
  }

  void operator()() const {
    for (auto const& call : calls_) plan_->execute(call, workspace_.workspace(), queue_);
    backend_.synchronize(queue_);
  }
  /// One layer of the host.
  void run_layer(std::int64_t layer) const {
    plan_->execute(calls_[static_cast<std::size_t>(layer)], workspace_.workspace(), queue_);
  }
  /// The first layer of a device.
  void enqueue(void* stream) const {
    plan_->execute(calls_.front(), workspace_.workspace(), {queue_.where, stream});
  }
  [[nodiscard]] state_update_plan const& plan() const noexcept { return *plan_; }
  [[nodiscard]] scan_arguments const& inputs() const noexcept { return inputs_.arguments; }

 private:
  backend const& backend_;
  queue queue_;
  device_tensors tensors_;
  evaluation::scan_inputs inputs_;
  evaluation::host_tensor out_;
  std::size_t state_bytes_;
  evaluation::host_tensor states_;
  std::vector<state_update_arguments> calls_;
  std::unique_ptr<state_update_plan> plan_;
  buffer workspace_;
};

bench_record time_update(settings const& chosen, layer_cell const& cell) {
  auto const& on = chosen_backend(chosen.backend);
  auto const bytes = static_cast<std::int64_t>(state_bytes_of(chosen, cell));
  bool const on_host = on.kind() == device_kind::host;
  auto const cache = on_host ? static_cast<std::int64_t>(benchmark::last_level_cache_bytes())
                             : std::int64_t{64} << 20;
  bool const on_device = !on_host && benchmark::can_time_devices();
  auto const layers =
      chosen.hot || on_device ? 1 : std::max<std::int64_t>(4, 2 * cache / bytes + 1);
  layered_update const call(on, chosen, cell, layers);

  auto record = start_record(chosen, on, state_update_problem::operator_name, cell);
  record.plan = call.plan().description();
  record.threads = threads_of(call.plan(), cell.threads);
  record.workspace_bytes = call.plan().workspace_bytes();
  record.state = chosen.state;
  if (chosen.hot) record.variant = "hot";
  record.moved_bytes = 2.0 * static_cast<double>(bytes);
  record.tensor_bytes = static_cast<double>(bytes);
  if (on_device) {
    // By replay of graphs, cold caches: nothing of the host is in the times.
    auto const time =
        benchmark::time_on_device([&](void* stream) { call.enqueue(stream); }, chosen.rounds);
    record.ms = time.median;
    record.ms_min = time.minimum;
    record.fraction_of_peak =
        record.gbytes_per_s() /
        benchmark::in_place_gbytes_per_s(static_cast<std::size_t>(bytes), chosen.rounds);
    return record;
  }

  std::unique_ptr<benchmark::peer_run> theirs;
  auto const* const ggml = benchmark::ggml_peer();
  if (on_host && ggml != nullptr && chosen.io == dtype::f32 && chosen.state == dtype::f32) {
    theirs = ggml->scan({.arguments = call.inputs(), .threads = record.threads, .layers = layers});
  }
  // The roof: as many bytes, read and written in place by a plain loop, in the same rounds.
  auto const floats = static_cast<std::size_t>(bytes + 3) / sizeof(float);
  evaluation::host_tensor plain;
  if (on_host) {
    plain = evaluation::host_tensor(dtype::f32, {static_cast<std::int64_t>(floats) * layers});
    std::ranges::fill(plain.elements<float>(), 1.0F);
  }
  auto const touch = [&](std::int64_t layer) {
    benchmark::update_in_place(
        plain.elements<float>().subspan(static_cast<std::size_t>(layer) * floats, floats),
        record.threads);
  };
  std::vector<std::function<void()>> candidates = {[&] { call(); }};
  if (on_host && chosen.hot) candidates.emplace_back([&] { touch(0); });
  if (theirs) candidates.emplace_back([&] { theirs->run(); });
  auto const times = benchmark::time_interleaved(candidates, chosen.timing());
  auto const each = [&](double ms) { return ms / static_cast<double>(layers); };
  record.ms = each(times[0].median);
  record.ms_min = each(times[0].minimum);
  if (theirs) {
    auto const& taken = times.back();
    record.peers.push_back({"ggml", each(taken.median), each(taken.minimum),
                            benchmark::median_ratio(taken, times[0])});
  }
  if (!on_host) return record;
  if (chosen.hot) {
    record.fraction_of_peak = benchmark::median_ratio(times[1], times[0]);
  } else {
    auto const beside = benchmark::time_in_turn(
        {[&](std::int64_t layer) { call.run_layer(layer); }, touch}, layers, chosen.timing());
    record.fraction_of_peak = benchmark::median_ratio(beside[1], beside[0]);
  }
  return record;
}

}  // namespace

void add_bench_update_command(CLI::App& bench) {
  auto const chosen = std::make_shared<settings>();
  chosen->seqlens = {1};
  auto* const command = bench.add_subcommand("update", "Time the state update (decode)");
  add_layer_options(*command, *chosen);
  command->add_option("--tokens", chosen->seqlens, "Tokens a row (default: 1)")
      ->delimiter(',')
      ->check(at_least(1))
      ->type_name("K,...");
  add_dtype_option(*command, "--io", "Type of x, B, C, out (default: f32)",
                   [chosen](dtype type) { chosen->io = type; });
  add_dtype_option(*command, "--state", "Type of the states (default: f32)",
                   [chosen](dtype type) { chosen->state = type; });
  command->add_flag("--hot", chosen->hot, "One layer's state again and again, in the caches");
  command->callback([chosen] {
    bool const on_device = chosen_backend(chosen->backend).kind() != device_kind::host &&
                           benchmark::can_time_devices();
    if (on_device && chosen->hot) {
      throw CLI::ValidationError("--hot", "a device is timed with cold caches only");
    }
    auto const footnote = fmt::format(
        "GB/s: states, read and written once. Peak: a plain loop over as many bytes; {}.",
        on_device     ? "replays of a graph, cold caches"
        : chosen->hot ? "one state, hot in the caches"
                      : "states of layers in turn, from memory");
    bench_layers(*chosen, "bench update", footnote,
                 [&](layer_cell const& cell) { return time_update(*chosen, cell); });
  });
}

}  // namespace mambatile::program
