#include <algorithm>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

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

/// One prefill: inputs, outputs and plan.
class prefill {
 public:
  prefill(settings const& with, scan_shape const& shape, std::int64_t seqlen, bool given_state,
          int threads, std::vector<std::int32_t> cu_seqlens = {})
      : shape_(shape), seqlen_(seqlen), cu_seqlens_(std::move(cu_seqlens)) {
    evaluation::scan_inputs_request request;
    request.shape = shape;
    request.seqlen = seqlen;
    request.with_initial_states = given_state;
    request.layout = with.served_by->preferred_state_layout();
    inputs_.emplace(request);
    arguments_ = inputs_->arguments;

    out_ = host_tensor(dtype::f32, {1, seqlen, shape.nheads, shape.headdim});
    auto const rows =
        cu_seqlens_.empty() ? std::int64_t{1} : static_cast<std::int64_t>(cu_seqlens_.size()) - 1;
    states_ = host_tensor(dtype::f32, {rows, shape.nheads, shape.headdim, shape.dstate});
    arguments_.out = out_.view();
    arguments_.final_states = preferred_states(*with.served_by, states_);
    if (!cu_seqlens_.empty()) {
      arguments_.cu_seqlens = make_view(static_cast<std::int32_t const*>(cu_seqlens_.data()),
                                        {static_cast<std::int64_t>(cu_seqlens_.size())});
    }
    auto options = inputs_->options;
    options.threads = threads;
    plan_.emplace(*with.served_by, make_problem(arguments_, options), arguments_);
  }
  prefill(prefill const&) = delete;
  prefill& operator=(prefill const&) = delete;

  void operator()() const { (*plan_)(); }
  [[nodiscard]] scan_arguments const& arguments() const noexcept { return arguments_; }
  [[nodiscard]] scan_options const& options() const noexcept { return inputs_->options; }
  [[nodiscard]] std::string description() const { return plan_->description(); }

  /// The part of the work that no chunk size removes: reading and updating the states, 4 N P a
  /// token and head.
  [[nodiscard]] double flops() const noexcept {
    return 4.0 * static_cast<double>(shape_.dstate * shape_.headdim * shape_.nheads * seqlen_);
  }
  /// Memory that must be read or written at least once.
  [[nodiscard]] double bytes() const noexcept {
    auto const tokens = static_cast<double>(seqlen_);
    return 4.0 * (tokens * static_cast<double>(2 * shape_.nheads * shape_.headdim +
                                               2 * shape_.ngroups * shape_.dstate + shape_.nheads) +
                  2.0 * static_cast<double>(shape_.nheads * shape_.headdim * shape_.dstate));
  }

 private:
  scan_shape shape_;
  std::int64_t seqlen_;
  std::vector<std::int32_t> cu_seqlens_;
  std::optional<scan_inputs> inputs_;
  host_tensor out_, states_;
  scan_arguments arguments_;
  std::optional<planned<scan_problem>> plan_;
};

void describe(measurement& cell, scan_shape const& shape, std::int64_t seqlen) {
  cell.words["shape"] = shape.name;
  cell.numbers["nheads"] = static_cast<double>(shape.nheads);
  cell.numbers["headdim"] = static_cast<double>(shape.headdim);
  cell.numbers["ngroups"] = static_cast<double>(shape.ngroups);
  cell.numbers["dstate"] = static_cast<double>(shape.dstate);
  cell.numbers["seqlen"] = static_cast<double>(seqlen);
}

/// Times ours, and ggml's where there is one; fills the cell but for its figures.
void time_prefill(settings const& with, measurement& cell, scan_shape const& shape,
                  std::int64_t seqlen, bool given_state, bool with_ggml) try {
  describe(cell, shape, seqlen);
  prefill const ours(with, shape, seqlen, given_state, cell.threads);
  cell.words["plan"] = ours.description();
  std::unique_ptr<peer_run> theirs;
  std::vector<std::function<void()>> candidates = {[&] { ours(); }};
  if (auto const* ggml = with_ggml ? ggml_peer() : nullptr) {
    peer_scan_request request;
    request.arguments = ours.arguments();
    request.threads = cell.threads;
    theirs = ggml->scan(request);
    ours();
    theirs->run();
    auto const out = compare(ours.arguments().out, theirs->out(), evaluation::out_slices);
    auto const states =
        compare(ours.arguments().final_states, theirs->final_states(), evaluation::state_slices);
    cell.ggml_difference = std::max(out.slice, states.slice);
    if (!out.finite || !states.finite || *cell.ggml_difference > 1e-4) {
      throw std::runtime_error(fmt::format("differs from ggml by {:.2g}", *cell.ggml_difference));
    }
    candidates.push_back([&] { theirs->run(); });
  }
  fma_probe const probe(cell.threads);
  auto const probe_at = candidates.size();
  candidates.emplace_back(probe);
  std::optional<prefill> on_one_thread;
  if (cell.threads > 1) {
    on_one_thread.emplace(with, shape, seqlen, given_state, 1);
    candidates.push_back([&] { (*on_one_thread)(); });
  }
  auto const times = time_interleaved(candidates, with.timing());
  cell.ours = times[0];
  if (theirs) cell.ggml = times[1];
  auto const& probe_times = times[probe_at];
  if (on_one_thread) {
    cell.numbers["scaling"] = times.back().minimum / cell.ours->minimum;
    cell.numbers["one_thread_ms"] = times.back().minimum;
  }
  cell.numbers["peak_gflops"] = probe.gflop() / probe_times.median * 1e3;
  cell.numbers["gflops"] = ours.flops() / cell.ours->median * 1e-6;
  cell.numbers["peak_fraction"] =
      ours.flops() * 1e-9 / probe.gflop() * median_ratio(probe_times, times[0]);
  cell.numbers["bytes"] = ours.bytes();
  cell.numbers["flops"] = ours.flops();
} catch (std::exception const& error) {
  cell.ours.reset();
  cell.ggml.reset();
  cell.problem = error.what();
}

double peak_fraction(measurement const& cell) {
  auto const found = cell.numbers.find("peak_fraction");
  return found == cell.numbers.end() || !cell.ours ? 0 : found->second;
}

/// Adds the cell, and to one of several threads how much faster it is than with one.
void add_with_scaling(report& to, measurement& cell, double goal) {
  if (cell.threads > 1) {
    cell.figures.push_back({fmt::format("scaling to {} threads", cell.threads),
                            cell.ours ? cell.numbers["scaling"] : 0, goal * cell.threads / 2});
  }
  to.add(cell);
}

}  // namespace

void measure_prefill(settings const& with, report& to) {
  for (auto const& shape : model_shapes(with)) {
    for (std::int64_t const seqlen : {512, 2048}) {
      for (int const threads : with.threads) {
        measurement cell{"prefill, given state", fmt::format("{} T={}", shape.name, seqlen),
                         threads};
        time_prefill(with, cell, shape, seqlen, true, true);
        cell.figures.push_back(ggml_ratio(cell, 2.0));
        cell.figures.push_back({"4NP rate over FMA peak", peak_fraction(cell), 0.75});
        add_with_scaling(to, cell, 1.9);
      }
    }
  }
}

void measure_short_prefill(settings const& with, report& to) {
  for (auto const& shape : model_shapes(with)) {
    for (std::int64_t const seqlen : {16, 32, 64, 128}) {
      for (int const threads : with.threads) {
        measurement cell{"short prefill", fmt::format("{} T={} zero state", shape.name, seqlen),
                         threads};
        time_prefill(with, cell, shape, seqlen, false, true);
        cell.figures.push_back(ggml_ratio(cell, 2.3));
        to.add(cell);
      }
    }
    for (int const threads : with.threads) {
      measurement cell{"short prefill", fmt::format("{} T=16 given state", shape.name), threads};
      time_prefill(with, cell, shape, 16, true, true);
      cell.figures.push_back(ggml_ratio(cell, 1.7));
      to.add(cell);
    }
  }
}

void measure_odd_shapes(settings const& with, report& to) {
  std::vector<scan_shape> const shapes = {
      {"P=80", 24, 80, 1, 128},
      {"N=96", 24, 64, 1, 96},
      {"N=256", 24, 64, 1, 256},
      {"G=H", 24, 64, 24, 128},
  };
  for (auto const& shape : shapes) {
    if (!with.wants(shape.name)) continue;
    for (int const threads : with.threads) {
      measurement cell{"other shapes, T=512", std::string(shape.name), threads};
      time_prefill(with, cell, shape, 512, true, true);
      cell.figures.push_back({"4NP rate over FMA peak", peak_fraction(cell), 0.65});
      to.add(cell);
    }
  }
  scan_shape const single = {"B x H = 1", 1, 64, 1, 128};
  if (!with.wants(single.name)) return;
  for (int const threads : with.threads) {
    measurement cell{"other shapes, T=512", std::string(single.name), threads};
    time_prefill(with, cell, single, 512, true, true);
    add_with_scaling(to, cell, 1.6);
  }
}

void measure_packed(settings const& with, report& to) {
  auto const shape = *evaluation::find_scan_shape("mamba2-130m");
  if (!with.wants(shape.name)) return;
  std::mt19937 random(7);
  std::uniform_int_distribution<std::int32_t> length(1, 64);
  std::vector<std::int32_t> cu_seqlens = {0};
  for (int i = 0; i < 256; ++i) cu_seqlens.push_back(cu_seqlens.back() + length(random));
  std::int64_t const tokens = cu_seqlens.back();
  for (int const threads : with.threads) {
    measurement cell{"packed", "mamba2-130m, 256 of length 1..64", threads};
    double value = 0;
    try {
      describe(cell, shape, tokens);
      prefill const packed(with, shape, tokens, false, threads, cu_seqlens);
      prefill const whole(with, shape, tokens, false, threads);
      cell.words["plan"] = packed.description();
      auto const times = time_interleaved({[&] { packed(); }, [&] { whole(); }}, with.timing());
      cell.ours = times[0];
      cell.numbers["whole_ms"] = times[1].minimum;
      value = median_ratio(times[1], times[0]);
    } catch (std::exception const& error) {
      cell.problem = error.what();
    }
    cell.figures.push_back({"rate over one long sequence's", value, 0.6});
    to.add(cell);
  }
}

void measure_accuracy(settings const& with, report& to) {
  auto const& reference = find_backend("reference");
  for (auto const& shape : model_shapes(with)) {
    measurement cell{"error against the f64 recurrence", fmt::format("{} T=512", shape.name),
                     with.most_threads()};
    double out = 0;
    double states = 0;
    try {
      describe(cell, shape, 512);
      prefill const ours(with, shape, 512, true, cell.threads);
      host_tensor out_memory(dtype::f32, {1, 512, shape.nheads, shape.headdim});
      host_tensor states_memory(dtype::f32, {1, shape.nheads, shape.headdim, shape.dstate});
      auto arguments = ours.arguments();
      arguments.out = out_memory.view();
      arguments.final_states = states_memory.view();
      planned<scan_problem> const theirs(reference, make_problem(arguments, ours.options()),
                                         arguments);
      ours();
      theirs();
      out = compare(ours.arguments().out, out_memory.view(), evaluation::out_slices).slice;
      states =
          compare(ours.arguments().final_states, states_memory.view(), evaluation::state_slices)
              .slice;
    } catch (std::exception const& error) {
      cell.problem = error.what();
    }
    cell.figures.push_back({"out, worst slice", out, 1e-6, true});
    cell.figures.push_back({"final states, worst slice", states, 2e-6, true});
    to.add(cell);
  }
}

}  // namespace mambatile::benchmark
