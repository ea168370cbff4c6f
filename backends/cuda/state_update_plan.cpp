#include "state_update_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "call_views.hpp"
#include "device.hpp"
#include "kernels/state_update.hpp"
#include "state_update_call.hpp"
#include "state_update_forms.hpp"
#include "status_bits.hpp"
#include "status_word.hpp"
#include "tuning_state_update.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

using problem_type = state_update_problem;
using arguments_type = state_update_arguments;

std::int64_t divide_up(std::int64_t left, std::int64_t right) { return (left + right - 1) / right; }

/// Whether groups of four elements along the last axis are aligned, wherever they start.
bool has_aligned_fours(const_tensor_view const& view) {
  if (!view || view.size() == 0) return true;
  auto const bytes = static_cast<std::int64_t>(4 * size_of(view.type));
  if (reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(bytes) != 0 ||
      view.extent(view.rank - 1) % 4 != 0) {
    return false;
  }
  for (int axis = 0; axis + 1 < view.rank; ++axis) {
    if (view.extent(axis) > 1 && view.stride(axis) % 4 != 0) return false;
  }
  return view.stride(view.rank - 1) == 1;
}

state_end_tensor end_of(const_tensor_view const& states, const_tensor_view const& slots,
                        bool per_token) {
  state_end_tensor end;
  end.states = as_state_tensor(states);
  end.slots = as_small_tensor(slots);
  end.per_token = per_token;
  if (!states) return end;
  end.limit = states.extent(0);
  if (!per_token) return end;
  end.columns = slots ? slots.extent(1) : states.extent(1);
  if (!slots) end.token = states.stride(1);
  return end;
}

class state_update_plan_implementation final : public detail::plan_implementation<problem_type> {
 public:
  state_update_plan_implementation(problem_type const& problem, device where)
      : problem_(problem), where_(where) {
    device_properties const properties = properties_of(where.index);
    multiprocessors_ = properties.multiprocessors;
    description_ = fmt::format("cuda sm_{} state in registers", properties.architecture);
  }

  void execute(arguments_type const& given, workspace_view workspace,
               queue const& on) const override;
  [[nodiscard]] execution_status status(workspace_view workspace, queue const& on) const override;

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return has_indices() ? status_word_bytes : 0;
  }
  [[nodiscard]] std::string_view description() const noexcept override { return description_; }

 private:
  [[nodiscard]] bool has_indices() const noexcept {
    return problem_.has_state_source || problem_.has_state_target || problem_.per_token_source;
  }
  [[nodiscard]] int rows_per_warp(std::int64_t batch) const noexcept {
    std::int64_t const warps = batch * problem_.nheads * divide_up(problem_.headdim, many_rows);
    return warps >= static_cast<std::int64_t>(multiprocessors_) * busy_warps ? many_rows : few_rows;
  }

  problem_type problem_;
  device where_;
  int multiprocessors_ = 1;
  std::string description_;
};

void state_update_plan_implementation::execute(arguments_type const& given,
                                               workspace_view workspace, queue const& on) const {
  device_scope const scope(where_.index);
  auto* const stream = static_cast<cudaStream_t>(on.native);
  auto const arguments = detail::with_token_axis(given);
  state_update_call call;
  call.batch = arguments.x.extent(0);
  call.tokens = arguments.x.extent(1);
  call.heads = static_cast<int>(problem_.nheads);
  call.group_heads =
      static_cast<int>(std::max<std::int64_t>(1, problem_.nheads / problem_.ngroups));
  call.headdim = static_cast<int>(problem_.headdim);
  call.dstate = static_cast<int>(problem_.dstate);
  call.io = problem_.io;
  call.x = as_token_tensor(arguments.x);
  call.z = as_token_tensor(arguments.z);
  call.B = as_token_tensor(arguments.B);
  call.C = as_token_tensor(arguments.C);
  call.out = as_token_tensor(arguments.out);
  call.dt = as_token_tensor(arguments.dt);
  call.dt_type = problem_.dt;
  call.A = as_small_tensor(arguments.A);
  call.D = as_small_tensor(arguments.D);
  call.dt_bias = as_small_tensor(arguments.dt_bias);
  call.D_per_channel = problem_.D == skip::per_channel;
  call.softplus = problem_.dt_softplus;
  call.delta_low = problem_.dt_limit[0];
  call.delta_high = problem_.dt_limit[1];
  call.state = problem_.state;
  call.source = end_of(arguments.initial_states, arguments.state_source, problem_.per_token_source);
  call.target = end_of(arguments.final_states, arguments.state_target, problem_.per_token_target);
  call.num_accepted = as_small_tensor(arguments.num_accepted);
  call.of_first = problem_.source_has_start ? 0 : 1;
  call.skip_padding = problem_.skip_padding;
  call.stochastic = problem_.state_rounding == rounding::stochastic;
  call.rounding_seed = arguments.rounding_seed;
  call.row_ids = as_small_tensor(arguments.row_ids);
  call.vector = true;
  for (auto const& view : std::initializer_list<const_tensor_view>{
           arguments.initial_states, arguments.final_states, arguments.B, arguments.C}) {
    call.vector = call.vector && has_aligned_fours(view);
  }
  if (has_indices()) call.status = clear_status_word(workspace, stream, "state_update");
  check(launch_state_update(call, rows_per_warp(call.batch), stream),
        "state_update: launching the kernel");
}

execution_status state_update_plan_implementation::status(workspace_view workspace,
                                                          queue const& on) const {
  device_scope const scope(where_.index);
  int const bits = read_status_word(has_indices(), workspace, on, "state_update");
  if ((bits & status_bad_slot) != 0) {
    return {false,
            "state_update: state_source or state_target names a slot outside its pool; such rows "
            "were left out"};
  }
  if ((bits & status_bad_count) != 0) {
    return {false,
            "state_update: num_accepted names none of the states that the previous call left; such "
            "rows were left out"};
  }
  return {true, {}};
}

}  // namespace

support supports_state_update(state_update_problem const& problem) {
  if (problem.dstate > most_update_columns) {
    return {false, fmt::format("dstate = {}; the kernels serve up to {}", problem.dstate,
                               most_update_columns)};
  }
  if (problem.max_batch * problem.nheads > std::numeric_limits<std::int32_t>::max() ||
      problem.headdim > most_update_channels) {
    return {false, fmt::format("max_batch = {}, nheads = {}, headdim = {} are more than block "
                               "numbers can count",
                               problem.max_batch, problem.nheads, problem.headdim)};
  }
  return {true, {}};
}

std::shared_ptr<detail::plan_implementation<state_update_problem> const> make_state_update_plan(
    state_update_problem const& problem, device where) {
  return std::make_shared<state_update_plan_implementation const>(problem, where);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
