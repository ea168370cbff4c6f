#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <mambatile/mambatile.hpp>

#include "bench/bench.hpp"
#include "bench/record.hpp"
#include "bench/shapes.hpp"
#include "benchmark/device_timing.hpp"
#include "benchmark/interleaved.hpp"
#include "benchmark/machine.hpp"
#include "device_tensor.hpp"
#include "evaluation/host_tensor.hpp"
#include "evaluation/scan_inputs.hpp"
#include "options.hpp"
#include "text.hpp"

// mambatile bench update

namespace mambatile::program {
namespace {

struct settings {
  std::vector<std::string> shapes = {"mamba2-130m"};
  std::vector<std::int64_t> batches = {1};
  std::int64_t tokens = 1;
  std::vector<int> threads;
  std::string backend;
  dtype io = dtype::f32;
  dtype state = dtype::f32;
  bool hot = false;
  int rounds = 20;
  bool json = false;
};

// One call on each of some layers' states, in turn: a state is out of the caches when its turn
// comes again, unless there is one layer alone.
class layered_update {
 public:
  layered_update(backend const& on, evaluation::scan_shape const& shape, settings const& chosen,
                 std::int64_t batch, std::int64_t layers, int threads)
      : backend_(on),
        queue_{{on.kind(), 0}},
        tensors_(on, queue_),
        inputs_({.shape = shape,
                 .batch = batch,
                 .seqlen = chosen.tokens,
                 .io = chosen.io,
                 .with_initial_states = false}),
        out_(chosen.io, {batch, chosen.tokens, shape.nheads, shape.headdim}),
        state_bytes_(static_cast<std::size_t>(batch * shape.nheads * shape.headdim * shape.dstate) *
                     size_of(chosen.state)),
        states_(chosen.state, {layers, batch, shape.nheads, shape.headdim, shape.dstate}) {
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
    state.extents = {batch, shape.nheads, shape.headdim, shape.dstate};
    state.strides = {shape.nheads * inner, inner, by_channel ? 1 : shape.dstate,
                     by_channel ? shape.headdim : 1};
    auto* const data = static_cast<std::byte*>(state.data);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      state.data = data + static_cast<std::size_t>(layer) * state_bytes_;
      call.initial_states = call.final_states = state;
      calls_.push_back(call);
    }
    plan_ = std::make_unique<state_update_plan>(
        on.plan(make_problem(call, {.dt_softplus = true, .threads = threads}), queue_.where));
    workspace_ = on.allocate(queue_.where, std::max<std::size_t>(plan_->workspace_bytes(), 1));
  }

  void operator()() const {
    for (auto const& call : calls_) plan_->execute(call, workspace_.workspace(), queue_);
    backend_.synchronize(queue_);
  }
  /// One layer's call.
  void enqueue(void* stream) const {
    plan_->execute(calls_.front(), workspace_.workspace(), {queue_.where, stream});
  }
  [[nodiscard]] state_update_plan const& plan() const noexcept { return *plan_; }
  [[nodiscard]] std::size_t state_bytes() const noexcept { return state_bytes_; }

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

std::int64_t bytes_of_state(settings const& chosen, evaluation::scan_shape const& shape,
                            std::int64_t batch) {
  return batch * shape.nheads * shape.headdim * shape.dstate *
         static_cast<std::int64_t>(size_of(chosen.state));
}

// Everything but the times.
bench_record describe(settings const& chosen, backend const& on,
                      evaluation::scan_shape const& shape, std::int64_t batch, int threads,
                      state_update_plan const& plan) {
  auto const bytes = static_cast<double>(bytes_of_state(chosen, shape, batch));
  bench_record record;
  record.operator_name = state_update_problem::operator_name;
  record.backend = on.name();
  record.plan = plan.description();
  record.shape = shape.name;
  if (chosen.hot) record.variant = "hot";
  record.batch = batch;
  record.seqlen = chosen.tokens;
  record.threads = threads;
  record.io = chosen.io;
  record.workspace_bytes = plan.workspace_bytes();
  record.moved_bytes = 2.0 * bytes;
  record.tensor_bytes = bytes;
  return record;
}

bench_record run(settings const& chosen, backend const& on, evaluation::scan_shape const& shape,
                 std::int64_t batch, int threads) {
  auto const bytes = bytes_of_state(chosen, shape, batch);
  bool const on_host = on.kind() == device_kind::host;
  auto const cache = on_host ? static_cast<std::int64_t>(benchmark::last_level_cache_bytes())
                             : std::int64_t{64} << 20;
  bool const on_device = !on_host && benchmark::can_time_devices();
  auto const layers =
      chosen.hot || on_device ? 1 : std::max<std::int64_t>(4, 2 * cache / bytes + 1);
  layered_update const call(on, shape, chosen, batch, layers, threads);
  auto const ran = threads_of(call.plan(), threads);
  if (on_device) {
    auto record = describe(chosen, on, shape, batch, ran, call.plan());
    auto const time =
        benchmark::time_on_device([&](void* stream) { call.enqueue(stream); }, chosen.rounds);
    record.ms = time.median;
    record.ms_min = time.minimum;
    record.peak_gbytes =
        benchmark::in_place_gbytes_per_s(static_cast<std::size_t>(bytes), chosen.rounds);
    return record;
  }
  std::vector<std::function<void()>> candidates = {[&] { call(); }};
  // The roof: the same bytes, read and written in place by a plain loop, in the same rounds.
  evaluation::host_tensor plain;
  if (on_host) {
    plain = evaluation::host_tensor(dtype::f32, {bytes * layers / 4});
    std::ranges::fill(plain.elements<float>(), 1.0F);
    candidates.emplace_back([&] { benchmark::update_in_place(plain.elements<float>(), ran); });
  }
  auto const times = benchmark::time_interleaved(
      candidates, {.least_rounds = chosen.rounds, .most_rounds = chosen.rounds});
  auto const each = [&](double ms) { return ms / static_cast<double>(layers); };

  auto record = describe(chosen, on, shape, batch, ran, call.plan());
  record.ms = each(times[0].median);
  record.ms_min = each(times[0].minimum);
  if (on_host) record.peak_gbytes = record.moved_bytes / each(times[1].minimum) * 1e-6;
  return record;
}

void bench_update(settings chosen) {
  auto const& on = chosen_backend(chosen.backend);
  if (chosen.threads.empty()) chosen.threads.push_back(available_processors());
  std::vector<bench_record> records;
  for (auto const& name : chosen.shapes) {
    for (auto const batch : chosen.batches) {
      for (auto const threads : chosen.threads) {
        records.push_back(run(chosen, on, bench_shape(name), batch, threads));
        if (chosen.json) print_json(records.back());
      }
    }
  }
  if (chosen.json) return;
  print_table(records);
  fmt::print(
      "Peak: the states' bytes read and written in place by a plain loop in the same rounds; "
      "{}.\n",
      on.kind() != device_kind::host && benchmark::can_time_devices()
          ? "each replay of a graph with cold caches"
      : chosen.hot ? "one state, hot in the caches"
                   : "states of layers in turn, from memory");
}

}  // namespace

void add_bench_update_command(CLI::App& bench) {
  auto const chosen = std::make_shared<settings>();
  auto* const command = bench.add_subcommand("update", "Time the state update (decode)");
  command
      ->add_option("--shape", chosen->shapes,
                   "Model (mamba2-130m, mamba2-2.7b, nemotron-h-8b, ...) or sizes (H24P64G1N128)")
      ->delimiter(',')
      ->type_name("NAME,...");
  command->add_option("--batch", chosen->batches, "Rows (default: 1)")
      ->delimiter(',')
      ->check(at_least(1))
      ->type_name("B,...");
  command->add_option("--tokens", chosen->tokens, "Tokens a row (default: 1)")
      ->check(at_least(1))
      ->type_name("K");
  command->add_option("--threads", chosen->threads, "Threads on the CPU (default: all)")
      ->delimiter(',')
      ->check(at_least(1))
      ->type_name("N,...");
  add_backend_option(*command, chosen->backend);
  add_dtype_option(*command, "--io", "Type of x, B, C, out (default: f32)",
                   [chosen](dtype type) { chosen->io = type; });
  add_dtype_option(*command, "--state", "Type of the states (default: f32)",
                   [chosen](dtype type) { chosen->state = type; });
  command->add_flag("--hot", chosen->hot, "One layer's state again and again, in the caches");
  command->add_option("--rounds", chosen->rounds, "Timed rounds (default: 20)")
      ->check(at_least(1))
      ->type_name("N");
  command->add_flag("--json", chosen->json, "Print one JSON object a line");
  command->callback([chosen] { bench_update(*chosen); });
}

}  // namespace mambatile::program
