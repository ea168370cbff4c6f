#include <algorithm>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include <mambatile/conv1d.hpp>
#include <mambatile/norm.hpp>

#include "benchmark/machine.hpp"
#include "cells.hpp"
#include "evaluation/tensor_error.hpp"

// The convolution and the gated norm.

namespace mambatile::benchmark {
namespace {

using evaluation::compare;
using evaluation::host_tensor;
using evaluation::scan_shape;

constexpr std::int64_t width = 4;

void fill_normal(host_tensor& tensor, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (auto& value : tensor.elements<float>()) value = normal(random);
}

/// Inputs of a convolution over x, B and C side by side, as the block's in-projection leaves them.
struct conv_inputs {
  conv_inputs(scan_shape const& shape, std::int64_t batch, std::int64_t seqlen)
      : channels(shape.nheads * shape.headdim + 2 * shape.ngroups * shape.dstate),
        x(dtype::f32, {batch, seqlen, channels}),
        weight(dtype::f32, {channels, width}),
        bias(dtype::f32, {channels}),
        states(dtype::f32, {batch, channels, width - 1}),
        final_states(dtype::f32, {batch, channels, width - 1}),
        out(dtype::f32, {batch, seqlen, channels}) {
    fill_normal(x, 1);
    fill_normal(weight, 2);
    fill_normal(bias, 3);
    fill_normal(states, 4);
  }
  std::int64_t channels;
  host_tensor x, weight, bias, states, final_states, out;
};

void measure_conv_cell(settings const& with, scan_shape const& shape, std::int64_t batch,
                       std::int64_t seqlen, int threads, report& to) {
  bool const update = seqlen == 1;
  measurement cell{"conv + bias + silu", fmt::format("{} B={} T={}", shape.name, batch, seqlen),
                   threads};
  try {
    conv_inputs inputs(shape, batch, seqlen);
    cell.words["shape"] = shape.name;
    cell.numbers["channels"] = static_cast<double>(inputs.channels);
    cell.numbers["batch"] = static_cast<double>(batch);
    cell.numbers["seqlen"] = static_cast<double>(seqlen);

    std::function<void()> ours;
    std::optional<planned<conv1d_problem>> whole;
    std::optional<planned<conv1d_update_problem>> next;
    auto const fill = [&](auto& arguments) {
      arguments.x = inputs.x.view();
      arguments.weight = inputs.weight.view();
      arguments.bias = inputs.bias.view();
      arguments.initial_states = inputs.states.view();
      arguments.final_states = inputs.final_states.view();
      arguments.out = inputs.out.view();
    };
    if (update) {
      conv1d_update_arguments arguments;
      fill(arguments);
      conv1d_update_options options;
      options.act = activation::silu;
      options.threads = threads;
      next.emplace(*with.served_by, make_problem(arguments, options), arguments);
      cell.words["plan"] = next->description();
      ours = [&] { (*next)(); };
    } else {
      conv1d_arguments arguments;
      fill(arguments);
      conv1d_options options;
      options.act = activation::silu;
      options.threads = threads;
      whole.emplace(*with.served_by, make_problem(arguments, options), arguments);
      cell.words["plan"] = whole->description();
      ours = [&] { (*whole)(); };
    }

    std::vector<std::function<void()>> candidates = {ours};
    std::unique_ptr<peer_run> theirs;
    if (auto const* ggml = ggml_peer()) {
      peer_conv1d_request request;
      request.x = inputs.x.view();
      request.weight = inputs.weight.view();
      request.bias = inputs.bias.view();
      request.initial_states = inputs.states.view();
      request.threads = threads;
      theirs = ggml->conv1d(request);
      ours();
      theirs->run();
      auto const error = compare(inputs.out.view(), theirs->out(), 0b001);
      cell.ggml_difference = error.slice;
      if (!error.finite || error.slice > 1e-5) {
        throw std::runtime_error(fmt::format("differs from ggml by {:.2g}", error.slice));
      }
      candidates.push_back([&] { theirs->run(); });
    }
    auto const times = time_interleaved(candidates, with.timing());
    cell.ours = times[0];
    if (theirs) cell.ggml = times[1];
  } catch (std::exception const& error) {
    cell.ours.reset();
    cell.problem = error.what();
  }
  cell.figures.push_back(ggml_ratio(cell, update ? 2.0 : 3.0));
  to.add(cell);
}

void measure_norm_cell(settings const& with, scan_shape const& shape, int threads, report& to) {
  auto const channels = shape.nheads * shape.headdim;
  auto const rows = static_cast<std::int64_t>(last_level_cache_bytes()) / (4 * channels) + 1;
  measurement cell{"gated norm, rows from memory",
                   fmt::format("{} {} x {}", shape.name, rows, channels), threads};
  double value = 0;
  try {
    host_tensor x(dtype::f32, {rows, channels});
    host_tensor z(dtype::f32, {rows, channels});
    host_tensor weight(dtype::f32, {channels});
    host_tensor out(dtype::f32, {rows, channels});
    fill_normal(x, 1);
    fill_normal(z, 2);
    fill_normal(weight, 3);
    std::ranges::fill(out.elements<float>(), 0.0F);
    gated_rms_norm_arguments arguments;
    arguments.x = x.view();
    arguments.z = z.view();
    arguments.weight = weight.view();
    arguments.out = out.view();
    gated_rms_norm_options options;
    options.group_size = channels / shape.ngroups;
    options.threads = threads;
    planned<gated_rms_norm_problem> const ours(*with.served_by, make_problem(arguments, options),
                                               arguments);
    auto const source = x.elements<float>();
    host_tensor copy(dtype::f32, {rows, channels});
    std::ranges::fill(copy.elements<float>(), 0.0F);
    auto const times = time_interleaved(
        {[&] { ours(); }, [&] { copy_plainly(source, copy.elements<float>(), threads); }},
        with.timing());
    cell.ours = times[0];
    cell.words["plan"] = ours.description();
    auto const bytes = 4.0 * static_cast<double>(rows * channels);
    cell.numbers["gbytes_per_second"] = 3 * bytes / times[0].minimum * 1e-6;
    cell.numbers["copy_gbytes_per_second"] = 2 * bytes / times[1].minimum * 1e-6;
    value = 1.5 * median_ratio(times[1], times[0]);
  } catch (std::exception const& error) {
    cell.ours.reset();
    cell.problem = error.what();
  }
  cell.figures.push_back({"bandwidth over a plain copy's", value, 0.8});
  to.add(cell);
}

}  // namespace

void measure_conv(settings const& with, report& to) {
  for (auto const& shape : model_shapes(with)) {
    for (std::int64_t const seqlen : {512, 2048}) {
      for (int const threads : with.threads) {
        measure_conv_cell(with, shape, 1, seqlen, threads, to);
      }
    }
    for (int const threads : with.threads) measure_conv_cell(with, shape, 16, 1, threads, to);
  }
}

void measure_norm(settings const& with, report& to) {
  for (auto const& shape : model_shapes(with)) {
    for (int const threads : with.threads) measure_norm_cell(with, shape, threads, to);
  }
}

}  // namespace mambatile::benchmark
