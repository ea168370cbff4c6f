#include "convolution.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "conv1d_forms.hpp"
#include "elements.hpp"
#include "state_ends.hpp"
#include "steps.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {
namespace {

// Raw inputs that must be at hand: a window's, or a state's.
std::int64_t inputs_kept(conv1d_update_problem const& problem) {
  return std::max(problem.state_len, problem.width - 1);
}

// One channel of one row, token by token.
class channel_walk {
 public:
  channel_walk(conv1d_update_problem const& problem, conv1d_update_arguments const& arguments,
               conv1d_results& results, double* scratch)
      : problem_(problem),
        arguments_(arguments),
        results_(results),
        kept_(inputs_kept(problem)),
        last_(scratch),
        ring_(last_ + kept_),
        weight_(ring_ + problem.state_len) {}

  void run(std::int64_t row, std::int64_t c) {
    auto const tokens = row_of(problem_, arguments_, row);
    auto const count = tokens.end - tokens.begin;
    c_ = c;
    if (problem_.skip_padding && is_padding(problem_, arguments_, row)) {
      for (auto l = tokens.begin; l < tokens.end; ++l) results_.out(tokens.b, l, c, 0.0);
      return;
    }
    load_parameters();
    load_state(row);
    for (auto l = tokens.begin; l < tokens.end; ++l) {
      bool const is_pad =
          problem_.pack == packing::seq_idx && index_at(arguments_.seq_idx, tokens.b, l) < 0;
      if (is_pad) {
        results_.out(tokens.b, l, c, 0.0);
      } else {
        enter_sequence(tokens.b, l);
        results_.out(tokens.b, l, c, token(tokens.b, l));
      }
      if (problem_.per_token_target) give_state(row, l - tokens.begin, count);
    }
    if (!problem_.per_token_target) give_state(row, count - 1, count);
  }

 private:
  void load_parameters() {
    auto const& weight = arguments_.weight;
    load(weight, c_ * weight.stride(0), weight.stride(1), problem_.width, weight_);
    bias_ = problem_.has_bias ? load(arguments_.bias, c_ * arguments_.bias.stride(0)) : 0.0;
  }

  void load_state(std::int64_t row) {
    std::fill_n(last_, kept_, 0.0);
    std::fill_n(ring_, problem_.state_len, 0.0);
    sequence_ = -1;
    position_ = problem_.circular ? ring_start(problem_, arguments_, row) : 0;
    auto const source = source_of(problem_, arguments_, row);
    if (!source.exists) return;
    auto const& states = arguments_.initial_states;
    auto const offset = source.offset + c_ * states.stride(states.rank - 2);
    auto const stride = states.stride(states.rank - 1);
    load(states, offset, stride, problem_.state_len, ring_);
    if (problem_.circular) {
      auto const length = problem_.state_len;
      for (std::int64_t back = 1; back < problem_.width; ++back) {
        auto const column = ((position_ - back) % length + length) % length;
        last_[kept_ - back] = ring_[column];
      }
    } else {
      auto const columns = problem_.state_len - dropped_columns(problem_, arguments_, row);
      for (std::int64_t back = 1; back <= columns; ++back) {
        last_[kept_ - back] = ring_[columns - back];
      }
    }
  }

  // A sequence that is not the row's first starts from zeros.
  void enter_sequence(std::int64_t b, std::int64_t l) {
    if (problem_.pack != packing::seq_idx) return;
    auto const sequence = index_at(arguments_.seq_idx, b, l);
    if (sequence_ >= 0 && sequence != sequence_) {
      std::fill_n(last_, kept_, 0.0);
      std::fill_n(ring_, problem_.state_len, 0.0);
    }
    sequence_ = sequence;
  }

  double token(std::int64_t b, std::int64_t l) {
    auto const& x = arguments_.x;
    double const raw = load(x, b * x.stride(0) + l * x.stride(1) + c_ * x.stride(2));
    auto const past = problem_.width - 1;
    double sum = bias_ + weight_[past] * raw;
    for (std::int64_t k = 0; k < past; ++k) sum += weight_[k] * last_[kept_ - past + k];
    if (kept_ > 0) {
      std::copy(last_ + 1, last_ + kept_, last_);
      last_[kept_ - 1] = raw;
    }
    if (problem_.circular) ring_[position_++ % problem_.state_len] = raw;
    return problem_.act == activation::silu ? silu(sum) : sum;
  }

  void give_state(std::int64_t row, std::int64_t token, std::int64_t tokens) {
    auto const target = target_of(problem_, arguments_, row, token, tokens);
    if (!target.exists) return;
    results_.final_state(target.offset, c_,
                         problem_.circular ? ring_ : last_ + kept_ - problem_.state_len);
  }

  conv1d_update_problem const& problem_;
  conv1d_update_arguments const& arguments_;
  conv1d_results& results_;
  std::int64_t kept_;
  double* last_;  // the last inputs, newest at the end
  double* ring_;  // the state as a ring
  double* weight_;

  std::int64_t c_ = 0;
  double bias_ = 0.0;
  std::int64_t position_ = 0;   // column of the ring for the next token, before the modulus
  std::int32_t sequence_ = -1;  // seq_idx of the last token that was no padding
};

}  // namespace

std::size_t conv1d_scratch(conv1d_update_problem const& problem) noexcept {
  return static_cast<std::size_t>(inputs_kept(problem) + problem.state_len + problem.width);
}

void run_conv1d(conv1d_update_problem const& problem, conv1d_update_arguments const& arguments,
                conv1d_results& results, double* scratch) {
  channel_walk walk(problem, arguments, results, scratch);
  auto const rows = rows_of(problem, arguments);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < problem.channels; ++c) walk.run(row, c);
  }
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
