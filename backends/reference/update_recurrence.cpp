#include "update_recurrence.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "argument_checks.hpp"
#include "elements.hpp"
#include "recurrence_step.hpp"
#include "state_update_forms.hpp"
#include "steps.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

std::size_t update_scratch(state_update_problem const& problem) noexcept {
  return static_cast<std::size_t>(problem.headdim * problem.dstate + 4 * problem.headdim +
                                  2 * problem.dstate);
}

void run_update(state_update_problem const& problem, state_update_arguments const& arguments,
                update_results& results, double* scratch) {
  auto const headdim = problem.headdim;
  auto const dstate = problem.dstate;
  double* const state = scratch;
  double* const x = state + headdim * dstate;
  double* const z = x + headdim;
  double* const y = z + headdim;
  double* const D = y + headdim;
  double* const B = D + headdim;
  double* const C = B + dstate;

  auto const batch = arguments.x.extent(0);
  auto const tokens = arguments.x.extent(1);
  for (std::int64_t b = 0; b < batch; ++b) {
    if (is_padding(problem, arguments, b)) {
      std::fill_n(y, headdim, 0.0);
      for (std::int64_t k = 0; k < tokens; ++k) {
        for (std::int64_t h = 0; h < problem.nheads; ++h) results.out(b, k, h, y);
      }
      continue;
    }
    for (std::int64_t h = 0; h < problem.nheads; ++h) {
      auto const group = h / (problem.nheads / problem.ngroups);
      auto const& from = arguments.initial_states;
      if (auto const source = source_of(problem, arguments, b); source.exists) {
        load_state(from, source.offset + h * from.stride(from.rank - 3), state);
      } else {
        std::fill_n(state, headdim * dstate, 0.0);
      }
      load_skip(arguments.D, h, headdim, D);
      for (std::int64_t k = 0; k < tokens; ++k) {
        auto const& dt = arguments.dt;
        double const raw = load(dt, b * dt.stride(0) + k * dt.stride(1) + h * dt.stride(2));
        load_last_axis(arguments.x, b, k, h, x);
        load_last_axis(arguments.B, b, k, group, B);
        load_last_axis(arguments.C, b, k, group, C);
        if (problem.has_z) load_last_axis(arguments.z, b, k, h, z);
        recurrence_step({.delta = step_size(raw, load_of_head(arguments.dt_bias, h),
                                            problem.dt_softplus, problem.dt_limit),
                         .A = load_of_head(arguments.A, h),
                         .x = x,
                         .B = B,
                         .C = C,
                         .D = arguments.D ? D : nullptr,
                         .z = problem.has_z ? z : nullptr},
                        headdim, dstate, state, y);
        results.out(b, k, h, y);
        if (auto const target = target_of(problem, arguments, b, k, tokens); target.exists) {
          results.state(b, k, h, target.offset, state);
        }
      }
      if (tokens == 0 && !problem.per_token_target) {
        // The state is handed on.
        if (auto const target = target_of(problem, arguments, b, -1, 0); target.exists) {
          results.state(b, 0, h, target.offset, state);
        }
      }
    }
  }
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
