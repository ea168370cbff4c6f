#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <mambatile/mambatile.hpp>

#include "bench/bench.hpp"
#include "bench/record.hpp"
#include "bench/scan_variants.hpp"
#include "bench/shapes.hpp"
#include "benchmark/device_timing.hpp"
#include "benchmark/interleaved.hpp"
#include "benchmark/machine.hpp"
#include "benchmark/peer.hpp"
#include "device_tensor.hpp"
#include "evaluation/scan_shapes.hpp"
#include "options.hpp"
#include "text.hpp"

// mambatile bench scan

namespace mambatile::program {
namespace {

struct settings {
  std::vector<std::string> shapes = {"mamba2-130m"};
  std::vector<std::int64_t> seqlens = {2048};
  std::int64_t batch = 0;
  std::vector<int> threads;
  std::vector<std::string> backends;
  std::vector<std::string> variants = {"plain"};
  dtype io = dtype::f32;
  dtype state = dtype::f32;
  products math = products::accurate;
  int chunk_size = 0;
  int rounds = 20;
  bool json = false;
};

// One planned call with all it needs.
class planned_scan {
 public:
  planned_scan(backend const& on, scan_workload const& work, scan_options const& options)
      : backend_(on), queue_{{on.kind(), 0}}, tensors_(on, queue_), arguments_(work.arguments()) {
    for (auto* view :
         {&arguments_.x, &arguments_.dt, &arguments_.A, &arguments_.B, &arguments_.C, &arguments_.D,
          &arguments_.z, &arguments_.dt_bias, &arguments_.initial_states, &arguments_.cu_seqlens,
          &arguments_.seq_idx, &arguments_.state_source, &arguments_.state_target}) {
      *view = tensors_.input(*view);
    }
    for (auto* view :
         {&arguments_.out, &arguments_.final_states, &arguments_.intermediate_states}) {
      *view = tensors_.output(*view);
    }
    plan_ = std::make_unique<scan_plan>(on.plan(make_problem(arguments_, options), queue_.where));
    workspace_ = on.allocate(queue_.where, std::max<std::size_t>(plan_->workspace_bytes(), 1));
  }
  [[nodiscard]] scan_plan const& plan() const noexcept { return *plan_; }
  void operator()() const {
    plan_->execute(arguments_, workspace_.workspace(), queue_);
    backend_.synchronize(queue_);
  }
  void enqueue(void* stream) const {
    plan_->execute(arguments_, workspace_.workspace(), {queue_.where, stream});
  }

 private:
  backend const& backend_;
  queue queue_;
  device_tensors tensors_;
  scan_arguments arguments_;
  std::unique_ptr<scan_plan> plan_;
  buffer workspace_;
};

// ggml beside ours where it can do the same: plain f32 calls on the host.
std::unique_ptr<benchmark::peer_run> ggml_beside(settings const& chosen, scan_workload const& plain,
                                                 int threads) {
  auto const* const ggml = benchmark::ggml_peer();
  bool const same = chosen.io == dtype::f32 && chosen.state == dtype::f32 &&
                    std::ranges::find(chosen.variants, "plain") != chosen.variants.end();
  if (ggml == nullptr || !same) return nullptr;
  auto arguments = plain.arguments();
  // Its states have dstate innermost; the values are random in any order.
  auto& states = arguments.initial_states;
  std::int64_t stride = 1;
  for (std::size_t axis = 4; axis-- > 0;) {
    states.strides[axis] = stride;
    stride *= states.extents[axis];
  }
  return ggml->scan({.arguments = arguments, .threads = threads});
}

class cell {
 public:
  cell(settings const& chosen, evaluation::scan_shape const& shape, std::int64_t seqlen,
       int threads)
      : chosen_(chosen), shape_(shape), threads_(threads) {
    request_.shape = shape;
    request_.batch = chosen.batch > 0 ? chosen.batch : shape.batch;
    request_.seqlen = seqlen;
    request_.io = chosen.io;
    request_.state = chosen.state;
  }

  std::vector<bench_record> run() {
    bool on_host = true;
    bool on_device = benchmark::can_time_devices();
    for (auto const* on : backends()) {
      on_host = on_host && on->kind() == device_kind::host;
      on_device = on_device && on->kind() == device_kind::cuda;
      for (auto const& variant : chosen_.variants) add(*on, variant);
    }
    if (on_device) return run_on_device();
    int threads = 0;
    for (auto const& record : records_) threads = std::max(threads, record.threads);
    if (on_host) add_ggml(threads);
    benchmark::fma_probe const probe(threads);
    if (on_host) candidates_.emplace_back(probe);
    auto const times = benchmark::time_interleaved(
        candidates_, {.least_rounds = chosen_.rounds, .most_rounds = chosen_.rounds});
    for (std::size_t i = 0; i < records_.size(); ++i) {
      auto& record = records_[i];
      record.ms = times[i].median;
      record.ms_min = times[i].minimum;
      if (ggml_) {
        auto const& theirs = times[records_.size()];
        record.peers.push_back(
            {"ggml", theirs.median, theirs.minimum, benchmark::median_ratio(theirs, times[i])});
      }
      if (!on_host) continue;
      record.peak_gflops = probe.gflop() / times.back().median * 1e3;
      record.fraction_of_peak =
          record.gflop / probe.gflop() * benchmark::median_ratio(times.back(), times[i]);
    }
    return std::move(records_);
  }

 private:
  [[nodiscard]] std::vector<backend const*> backends() const {
    std::vector<backend const*> result;
    for (auto const& name : chosen_.backends) result.push_back(&find_backend(name));
    if (result.empty()) result.push_back(&default_backend());
    return result;
  }

  // By replay of graphs, cold caches: nothing of the host is in the times.
  std::vector<bench_record> run_on_device() {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      auto const time = benchmark::time_on_device([&](void* stream) { scans_[i]->enqueue(stream); },
                                                  chosen_.rounds);
      records_[i].ms = time.median;
      records_[i].ms_min = time.minimum;
    }
    return std::move(records_);
  }

  void add(backend const& on, std::string const& variant) {
    request_.layout = on.preferred_state_layout();
    auto const& work = *workloads_.emplace_back(std::make_unique<scan_workload>(variant, request_));
    if (variant == "plain") plain_ = &work;
    auto options = work.options();
    options.threads = threads_;
    options.math = chosen_.math;
    options.chunk_size = chosen_.chunk_size;
    auto const& scan = *scans_.emplace_back(std::make_unique<planned_scan>(on, work, options));
    candidates_.emplace_back([&scan] { scan(); });

    auto& record = records_.emplace_back();
    record.operator_name = scan_problem::operator_name;
    record.backend = on.name();
    record.plan = scan.plan().description();
    record.shape = shape_.name;
    record.variant = variant;
    record.batch = request_.batch;
    record.seqlen = request_.seqlen;
    record.threads = threads_of(scan.plan(), threads_);
    record.io = chosen_.io;
    record.workspace_bytes = scan.plan().workspace_bytes();
    // What no chunk size removes: reading the state and updating it, 2 N P each.
    record.gflop = 4e-9 * static_cast<double>(shape_.dstate * shape_.headdim * shape_.nheads) *
                   static_cast<double>(request_.batch * request_.seqlen);
    record.tensor_bytes = work.tensor_bytes();
  }

  void add_ggml(int threads) {
    if (plain_ == nullptr) return;
    ggml_ = ggml_beside(chosen_, *plain_, threads);
    if (ggml_) candidates_.emplace_back([this] { ggml_->run(); });
  }

  settings const& chosen_;
  evaluation::scan_shape shape_;
  int threads_;
  evaluation::scan_inputs_request request_;
  std::vector<std::unique_ptr<scan_workload>> workloads_;
  std::vector<std::unique_ptr<planned_scan>> scans_;
  std::vector<std::function<void()>> candidates_;
  std::vector<bench_record> records_;
  scan_workload const* plain_ = nullptr;
  std::unique_ptr<benchmark::peer_run> ggml_;
};

void bench_scan(settings chosen) {
  std::vector<evaluation::scan_shape> shapes;
  for (auto const& name : chosen.shapes) shapes.push_back(bench_shape(name));
  if (chosen.threads.empty()) chosen.threads.push_back(available_processors());
  progress shown("bench scan", static_cast<std::int64_t>(shapes.size() * chosen.seqlens.size() *
                                                         chosen.threads.size()));
  std::vector<bench_record> records;
  double peak = 0;
  for (auto const& shape : shapes) {
    for (auto const seqlen : chosen.seqlens) {
      for (auto const threads : chosen.threads) {
        for (auto& record : cell(chosen, shape, seqlen, threads).run()) {
          if (chosen.json) print_json(record);
          peak = std::max(peak, record.peak_gflops);
          records.push_back(std::move(record));
        }
        shown.step();
      }
    }
  }
  if (chosen.json) return;
  print_table(records);
  fmt::print("GFLOP/s: 4 N P a token and head. ms: median of {} interleaved rounds.\n",
             chosen.rounds);
  if (peak > 0)
    fmt::print(
        "Peak: {:.1f} GFLOP/s of fused multiply-adds, measured in each round; % peak: the median "
        "of "
        "the rounds' own shares.\n",
        peak);
}

}  // namespace

void add_bench_scan_command(CLI::App& bench) {
  auto const chosen = std::make_shared<settings>();
  auto* const command = bench.add_subcommand("scan", "Time the scan (prefill)");
  command
      ->add_option("--shape", chosen->shapes,
                   "Model (mamba2-130m, mamba2-2.7b, nemotron-h-8b, ...) or sizes (H24P64G1N128)")
      ->delimiter(',')
      ->type_name("NAME,...");
  command->add_option("--seqlen", chosen->seqlens, "Tokens a row (default: 2048)")
      ->delimiter(',')
      ->check(at_least(1))
      ->type_name("T,...");
  command->add_option("--batch", chosen->batch, "Rows (default: the shape's)")
      ->check(at_least(1))
      ->type_name("B");
  command->add_option("--threads", chosen->threads, "Threads on the CPU (default: all)")
      ->delimiter(',')
      ->check(at_least(1))
      ->type_name("N,...");
  command->add_option("--backend", chosen->backends, "Backends, timed in turn")
      ->delimiter(',')
      ->type_name("NAME,...");
  command->add_option("--variant", chosen->variants, "Forms of the call, timed in turn")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>(scan_variants.begin(), scan_variants.end())))
      ->type_name("NAME,...");
  add_dtype_option(*command, "--io", "Type of x, z, B, C, out (default: f32)",
                   [chosen](dtype type) { chosen->io = type; });
  add_dtype_option(*command, "--state", "Type of the states (default: f32)",
                   [chosen](dtype type) { chosen->state = type; });
  add_products_option(*command, chosen->math);
  command->add_option("--chunk-size", chosen->chunk_size, "Chunk to work in (default: the plan's)")
      ->check(at_least(0))
      ->type_name("Q");
  command->add_option("--rounds", chosen->rounds, "Timed rounds (default: 20)")
      ->check(at_least(1))
      ->type_name("N");
  command->add_flag("--json", chosen->json, "Print one JSON object a line");
  command->callback([chosen] { bench_scan(*chosen); });
}

}  // namespace mambatile::program
