#include "scan_run.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <mambatile/errors.hpp>

#include "device_tensor.hpp"
#include "text.hpp"
#include "timing.hpp"

namespace mambatile::program {
namespace {

using evaluation::host_tensor;

// All bits set is a NaN in every floating-point type: what the scan leaves unwritten is seen.
void poison(host_tensor& tensor) { std::memset(tensor.view().data, 0xff, tensor.bytes()); }

// Tokens beyond the last sequence are the caller's; here they are zeros.
void clear_unwritten(host_tensor& out, std::int64_t written) {
  auto const& view = out.view();
  auto const rest = view.extent(1) - written;
  if (view.extent(0) != 1 || rest == 0) return;
  auto const element = size_of(view.type);
  auto* const data = static_cast<std::byte*>(view.data);
  std::memset(data + static_cast<std::size_t>(written * view.stride(1)) * element, 0,
              static_cast<std::size_t>(rest * view.stride(1)) * element);
}

// Slots of a pool that no row writes hold what the pool held before, or zeros.
void fill_unwritten(host_tensor& states, std::vector<bool> const& written,
                    const_tensor_view const& before) {
  auto const view = states.view();
  bool const same = before && before.type == view.type && before.rank == view.rank &&
                    before.extents == view.extents;
  auto const slot_bytes = static_cast<std::size_t>(view.stride(0)) * size_of(view.type);
  for (std::size_t slot = 0; slot < written.size(); ++slot) {
    if (written[slot]) continue;
    auto* const to = static_cast<std::byte*>(view.data) + slot * slot_bytes;
    if (same) {
      std::memcpy(to, static_cast<std::byte const*>(before.data) + slot * slot_bytes, slot_bytes);
    } else {
      std::memset(to, 0, slot_bytes);
    }
  }
}

std::optional<compared> compare_states(evaluation::scan_case const& what,
                                       const_tensor_view const& got,
                                       evaluation::error_limits const& limits) {
  auto const& expected = what.expected_final_states();
  if (!expected) return std::nullopt;
  compared result{{}, limits};
  auto const written = what.written_states();
  for (std::size_t slot = 0; slot < written.size(); ++slot) {
    if (!written[slot]) continue;
    auto const one = [&](const_tensor_view view) {
      view.extents[0] = 1;
      view.data = static_cast<std::byte const*>(view.data) +
                  slot * static_cast<std::size_t>(view.stride(0)) * size_of(view.type);
      return view;
    };
    result.error = result.error.combined_with(
        evaluation::compare(one(got), one(expected), evaluation::state_slices));
  }
  return result;
}

std::optional<compared> compare_out(evaluation::scan_case const& what, const_tensor_view got,
                                    evaluation::error_limits const& limits) {
  auto want = what.expected_out();
  if (!want) return std::nullopt;
  got.extents[1] = want.extents[1] = what.written_seqlen();
  return compared{evaluation::compare(got, want, evaluation::out_slices), limits};
}

void check_expectation(char const* name, const_tensor_view const& expected,
                       const_tensor_view const& got) {
  if (!expected || (expected.rank == got.rank && expected.extents == got.extents)) return;
  throw file_error(std::string("expected ") + name + " has shape " + shape_string(expected) +
                   ", but the scan makes " + shape_string(got));
}

}  // namespace

scan_run run_scan(evaluation::scan_case const& what, backend const& on, scan_options const& options,
                  int repeat) {
  scan_run run;
  auto const& inputs = what.inputs();
  (void)make_problem(inputs, options);  // refuses tensors of the wrong rank
  run.out =
      host_tensor(what.io(), {inputs.x.extents.data(), static_cast<std::size_t>(inputs.x.rank)});
  run.final_states = host_tensor(what.state_type(), what.final_states_shape());
  check_expectation("y", what.expected_out(), run.out.view());
  check_expectation("final_states", what.expected_final_states(), run.final_states.view());
  poison(run.out);
  poison(run.final_states);
  clear_unwritten(run.out, what.written_seqlen());
  fill_unwritten(run.final_states, what.written_states(), inputs.initial_states);

  device const where{on.kind(), 0};
  queue const queue{where};
  device_tensors tensors(on, queue);
  scan_arguments arguments = inputs;
  for (auto* view :
       {&arguments.x, &arguments.dt, &arguments.A, &arguments.B, &arguments.C, &arguments.D,
        &arguments.z, &arguments.dt_bias, &arguments.initial_states, &arguments.cu_seqlens,
        &arguments.seq_idx, &arguments.state_source, &arguments.state_target}) {
    *view = tensors.input(*view);
  }
  arguments.out = tensors.output(run.out.view());
  arguments.final_states = tensors.output(run.final_states.view());

  run.problem = make_problem(arguments, options);
  auto const plan = on.plan(run.problem, where);
  run.plan = plan.description();
  run.workspace_bytes = plan.workspace_bytes();
  auto const workspace = on.allocate(where, std::max<std::size_t>(run.workspace_bytes, 1));
  auto const call = [&] {
    plan.execute(arguments, workspace.workspace(), queue);
    on.synchronize(queue);
  };
  if (repeat > 1) call();
  progress shown("scan", repeat);
  std::vector<double> times;
  for (int round = 0; round < repeat; ++round) {
    times.push_back(milliseconds_of(call));
    shown.step();
  }
  run.ms = median(times);
  run.ms_min = std::ranges::min(times);
  if (auto const status = plan.status(workspace.workspace(), queue); !status) {
    throw invalid_argument(status.message);
  }
  tensors.fetch();

  auto const limits = evaluation::limits_of_scan(
      {on.name(), what.io(), what.state_type(), options.math, what.regime()});
  run.out_error = compare_out(what, run.out.view(), limits.out);
  run.final_states_error = compare_states(what, run.final_states.view(), limits.states);
  return run;
}

}  // namespace mambatile::program
