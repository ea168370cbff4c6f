#include "recurrence.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "argument_checks.hpp"
#include "elements.hpp"
#include "recurrence_step.hpp"
#include "steps.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {
namespace {

// Tokens [begin, end) of batch row `b`, whose states are at `row`.
struct token_range {
  std::int64_t row;
  std::int64_t b;
  std::int64_t begin;
  std::int64_t end;
};

// One head of one row, token by token. The state is held as (n, p).
class head_walk {
 public:
  head_walk(scan_problem const& problem, scan_arguments const& arguments, scan_results& results,
            double* scratch)
      : problem_(problem),
        arguments_(arguments),
        results_(results),
        state_(scratch),
        x_(state_ + problem.headdim * problem.dstate),
        z_(x_ + problem.headdim),
        y_(z_ + problem.headdim),
        D_(y_ + problem.headdim),
        B_(D_ + problem.headdim),
        C_(B_ + problem.dstate) {}

  void run(token_range const& tokens, std::int64_t h) {
    start(tokens, h);
    for (std::int64_t l = tokens.begin; l < tokens.end; ++l) {
      if (is_padding(tokens.b, l)) {
        std::fill_n(y_, problem_.headdim, 0.0);
        results_.out(tokens.b, l, h, y_);
      } else {
        enter_sequence(tokens.b, l);
        token(tokens.b, l, h);
      }
      snapshot(tokens, l, h);
    }
    finish(tokens, h);
  }

 private:
  void start(token_range const& tokens, std::int64_t h) {
    A_ = load_of_head(arguments_.A, h);
    dt_bias_ = load_of_head(arguments_.dt_bias, h);
    load_skip(arguments_.D, h, problem_.headdim, D_);
    exponent_ = 0.0;
    sequence_ = -1;
    was_reset_ = false;
    load_initial_state(tokens.row, h);
  }

  void load_initial_state(std::int64_t row, std::int64_t h) {
    std::int64_t source = problem_.has_initial_states ? row : -1;
    if (problem_.has_state_source) source = index_at(arguments_.state_source, row);
    if (source < 0) {
      std::fill_n(state_, problem_.headdim * problem_.dstate, 0.0);
      return;
    }
    auto const& from = arguments_.initial_states;
    load_state(from, source * from.stride(0) + h * from.stride(1), state_);
  }

  [[nodiscard]] bool is_padding(std::int64_t b, std::int64_t l) const {
    return problem_.pack == packing::seq_idx && index_at(arguments_.seq_idx, b, l) < 0;
  }

  // A sequence that is not the row's first starts from zero.
  void enter_sequence(std::int64_t b, std::int64_t l) {
    if (problem_.pack != packing::seq_idx) return;
    auto const sequence = index_at(arguments_.seq_idx, b, l);
    if (sequence_ >= 0 && sequence != sequence_) {
      std::fill_n(state_, problem_.headdim * problem_.dstate, 0.0);
      was_reset_ = true;
    }
    sequence_ = sequence;
  }

  void token(std::int64_t b, std::int64_t l, std::int64_t h) {
    auto const headdim = problem_.headdim;
    auto const group = h / (problem_.nheads / problem_.ngroups);
    auto const& dt = arguments_.dt;
    double const delta = step_size(load(dt, b * dt.stride(0) + l * dt.stride(1) + h * dt.stride(2)),
                                   dt_bias_, problem_.dt_softplus, problem_.dt_limit);
    exponent_ += delta * A_;
    load_last_axis(arguments_.x, b, l, h, x_);
    load_last_axis(arguments_.B, b, l, group, B_);
    load_last_axis(arguments_.C, b, l, group, C_);
    if (problem_.has_z) load_last_axis(arguments_.z, b, l, h, z_);
    recurrence_step({.delta = delta,
                     .A = A_,
                     .x = x_,
                     .B = B_,
                     .C = C_,
                     .D = problem_.D == skip::none ? nullptr : D_,
                     .z = problem_.has_z ? z_ : nullptr},
                    headdim, problem_.dstate, state_, y_);
    results_.out(b, l, h, y_);
  }

  void snapshot(token_range const& tokens, std::int64_t l, std::int64_t h) {
    auto const every = problem_.intermediate_every;
    if (every == 0) return;
    auto const done = l + 1 - tokens.begin;
    if (done % every != 0) return;
    auto const row = tokens.begin / every + done / every - 1;
    for (std::int64_t n = 0; n < problem_.dstate; ++n) {
      results_.intermediate_state(tokens.b, row, h, n, state_ + n * problem_.headdim);
    }
  }

  void finish(token_range const& tokens, std::int64_t h) {
    if (problem_.has_total_decay) {
      results_.total_decay(tokens.row, h, was_reset_ ? 0.0 : std::exp(exponent_));
    }
    if (!problem_.has_final_states) return;
    std::int64_t target = tokens.row;
    if (problem_.has_state_target) target = index_at(arguments_.state_target, tokens.row);
    if (target < 0) return;
    for (std::int64_t n = 0; n < problem_.dstate; ++n) {
      results_.final_state(target, h, n, state_ + n * problem_.headdim);
    }
  }

  scan_problem const& problem_;
  scan_arguments const& arguments_;
  scan_results& results_;
  double* state_;
  double* x_;
  double* z_;
  double* y_;
  double* D_;
  double* B_;
  double* C_;

  double A_ = 0.0;
  double dt_bias_ = 0.0;
  double exponent_ = 0.0;       // sum of delta A
  std::int32_t sequence_ = -1;  // seq_idx of the last token that was no padding
  bool was_reset_ = false;
};

}  // namespace

std::size_t scan_scratch(scan_problem const& problem) noexcept {
  return static_cast<std::size_t>(problem.headdim * problem.dstate + 4 * problem.headdim +
                                  2 * problem.dstate);
}

void run_scan(scan_problem const& problem, scan_arguments const& arguments, scan_results& results,
              double* scratch) {
  head_walk walk(problem, arguments, results, scratch);
  bool const is_packed = problem.pack == packing::cu_seqlens;
  auto const rows = is_packed ? arguments.cu_seqlens.extent(0) - 1 : arguments.x.extent(0);
  for (std::int64_t row = 0; row < rows; ++row) {
    token_range tokens{row, row, 0, arguments.x.extent(1)};
    if (is_packed) {
      tokens = {row, 0, index_at(arguments.cu_seqlens, row),
                index_at(arguments.cu_seqlens, row + 1)};
    }
    for (std::int64_t h = 0; h < problem.nheads; ++h) walk.run(tokens, h);
  }
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
