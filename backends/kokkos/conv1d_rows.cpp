#include "conv1d_rows.hpp"

#include <algorithm>
#include <cstdint>

#include "conv1d_kernels.hpp"
#include "conv1d_places.hpp"
#include "conv1d_step.hpp"
#include "convert.hpp"
#include "state_ends.hpp"
#include "strided_rows.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

constexpr std::int64_t block = conv1d_tuned.block;

std::int64_t offset_of(const_tensor_view const& view, std::int64_t b, std::int64_t l,
                       std::int64_t c) noexcept {
  return b * view.stride(0) + l * view.stride(1) + c * view.stride(2);
}

// Channels [begin, end) in pieces that fit a row of the scratch.
template <class Visit>
void for_each_block(channel_range const& channels, Visit const& visit) noexcept {
  for (auto c = channels.begin; c < channels.end; c += block) {
    visit(c, std::min(block, channels.end - c));
  }
}

// One row's tensors with the scratch, for pieces of up to `block` channels.
class staged_row {
 public:
  staged_row(conv1d_call const& call, conv1d_walk const& walk,
             conv1d_scratch const& scratch) noexcept
      : call_(call), walk_(walk), scratch_(scratch) {}

  void stage_token(std::int64_t token, std::int64_t c, std::int64_t count,
                   float* to) const noexcept {
    auto const& x = call_.arguments.x;
    stage_row(x, offset_of(x, walk_.tokens.b, token, c), x.stride(2), count, to);
  }

  void stage_column(std::int64_t column, std::int64_t c, std::int64_t count,
                    float* to) const noexcept {
    auto const& states = call_.arguments.initial_states;
    auto const channel_stride = states.stride(states.rank - 2);
    auto const offset =
        walk_.state_offset + c * channel_stride + column * states.stride(states.rank - 1);
    stage_row(states, offset, channel_stride, count, to);
  }

  // All columns of the row's state.
  void stage_state(std::int64_t c, std::int64_t count, float* to) const noexcept {
    auto const& states = call_.arguments.initial_states;
    auto const channel_stride = states.stride(states.rank - 2);
    stage_rows(states, walk_.state_offset + c * channel_stride, states.stride(states.rank - 1),
               channel_stride, call_.problem.state_len, count, to, block);
  }

  // The scratch's places as rows of channels.
  void stage_places(std::int64_t places, std::int64_t c, std::int64_t count,
                    float* to) const noexcept {
    for (std::int64_t i = 0; i < places; ++i, to += block) {
      auto const place = scratch_.places[i];
      if (place >= 0) {
        stage_token(place, c, count, to);
      } else if (place == no_place) {
        std::fill_n(to, count, 0.0F);
      } else {
        stage_column(column_of_place(place), c, count, to);
      }
    }
  }

  // Outputs of `count` channels of tokens [first, first + tokens), whose windows start at `line`.
  void convolve_line(float const* line, std::int64_t first, std::int64_t tokens, std::int64_t c,
                     std::int64_t count) const noexcept {
    auto const& problem = call_.problem;
    auto const& out = call_.arguments.out;
    auto const* const weights = scratch_.weights + c;
    auto const pitch = scratch_.shape.channels;
    auto const offset = offset_of(out, walk_.tokens.b, first, c);
    if (call_.order == conv1d_order::channels) {
      visit_type(problem.io, [&]<class Element>(Element const*) {
        convolve_channels(line, block, static_cast<Element*>(out.data) + offset, out.stride(1),
                          tokens, count, weights, pitch, scratch_.bias + c, problem.width,
                          problem.act);
      });
      return;
    }
    convolve_channels(line, block, scratch_.results, block, tokens, count, weights, pitch,
                      scratch_.bias + c, problem.width, problem.act);
    for (std::int64_t i = 0; i < tokens; ++i) {
      unstage_row(out, offset + i * out.stride(1), out.stride(2), count,
                  scratch_.results + i * block);
    }
  }

 private:
  conv1d_call const& call_;
  conv1d_walk const& walk_;
  conv1d_scratch const& scratch_;
};

void write_zeros(conv1d_call const& call, std::int64_t b, std::int64_t begin, std::int64_t end,
                 channel_range const& channels) noexcept {
  auto const& out = call.arguments.out;
  visit_type(call.problem.io, [&]<class Element>(Element const*) {
    for (auto l = begin; l < end; ++l) {
      auto* const data = static_cast<Element*>(out.data) + offset_of(out, b, l, 0);
      for (auto c = channels.begin; c < channels.end; ++c) data[c * out.stride(2)] = Element();
    }
  });
}

// Tokens whose windows lie in x as they are: the width - 1 tokens before each are its sequence's.
void convolve_directly(conv1d_call const& call, conv1d_walk const& walk, std::int64_t begin,
                       std::int64_t end, channel_range const& channels,
                       conv1d_scratch const& scratch) noexcept {
  auto const& problem = call.problem;
  auto const& x = call.arguments.x;
  auto const& out = call.arguments.out;
  auto const b = walk.tokens.b;
  auto const past = problem.width - 1;
  auto const pitch = scratch.shape.channels;
  if (call.order == conv1d_order::neither) {
    staged_row const staged(call, walk, scratch);
    for (auto first = begin; first < end; first += scratch.shape.tokens) {
      auto const tokens = std::min(scratch.shape.tokens, end - first);
      for_each_block(channels, [&](std::int64_t c, std::int64_t count) {
        for (std::int64_t i = 0; i < past + tokens; ++i) {
          staged.stage_token(first - past + i, c, count, scratch.line + i * block);
        }
        staged.convolve_line(scratch.line, first, tokens, c, count);
      });
    }
    return;
  }
  visit_type(problem.io, [&]<class Element>(Element const*) {
    auto const* const from = static_cast<Element const*>(x.data) + offset_of(x, b, begin - past, 0);
    auto* const to = static_cast<Element*>(out.data) + offset_of(out, b, begin, 0);
    if (call.order == conv1d_order::channels) {
      auto const c = channels.begin;
      convolve_channels(from + c, x.stride(1), to + c, out.stride(1), end - begin, channels.end - c,
                        scratch.weights + c, pitch, scratch.bias + c, problem.width, problem.act);
      return;
    }
    for (auto c = channels.begin; c < channels.end; ++c) {
      convolve_tokens(from + c * x.stride(2), to + c * out.stride(2), end - begin,
                      scratch.weights + c, pitch, scratch.bias[c], problem.width, problem.act);
    }
  });
}

// Tokens right before `token` that are of its sequence, up to `most`.
std::int64_t tokens_in_line(conv1d_call const& call, conv1d_walk const& walk, std::int64_t token,
                            std::int64_t most) noexcept {
  auto const before = std::min(most, token - walk.tokens.begin);
  if (call.problem.pack != packing::seq_idx) return before;
  auto const sequence = sequence_at(call, walk, token);
  std::int64_t count = 0;
  while (count < before && sequence_at(call, walk, token - 1 - count) == sequence) ++count;
  return count;
}

// The end of the run of equal seq_idx that starts at `begin`.
std::int64_t end_of_run(conv1d_call const& call, conv1d_walk const& walk, std::int64_t begin,
                        std::int64_t end) noexcept {
  if (call.problem.pack != packing::seq_idx) return end;
  auto const sequence = sequence_at(call, walk, begin);
  auto token = begin + 1;
  while (token < end && sequence_at(call, walk, token) == sequence) ++token;
  return token;
}

bool is_dense_state(const_tensor_view const& states) noexcept {
  return states.stride(states.rank - 1) == 1 && states.stride(states.rank - 2) == step_width - 1;
}

// Whether the row is a step of decoding in its usual form.
bool is_step(conv1d_call const& call, conv1d_walk const& walk) noexcept {
  auto const& problem = call.problem;
  auto const& arguments = call.arguments;
  return has_conv1d_step() && problem.width == step_width && call.order == conv1d_order::channels &&
         !problem.per_token_target &&
         (problem.state_len == step_width - 1 ||
          !(problem.has_initial_states || problem.has_final_states)) &&
         (!walk.has_state || (is_dense_state(arguments.initial_states) &&
                              detail::dropped_columns(problem, arguments, walk.row) == 0)) &&
         (!problem.has_final_states || is_dense_state(arguments.final_states));
}

// Whole packs of channels of a step; gives the channels that are left.
channel_range run_step(conv1d_call const& call, conv1d_walk const& walk,
                       channel_range const& channels, conv1d_scratch const& scratch) noexcept {
  auto const& problem = call.problem;
  auto const& arguments = call.arguments;
  auto const c = channels.begin;
  auto const count = (channels.end - c) / pack_width * pack_width;
  auto const b = walk.tokens.b;
  auto const first = walk.tokens.begin;
  auto const tokens = walk.tokens.end - first;
  auto const target = detail::target_of(problem, arguments, walk.row, tokens - 1, tokens);
  auto const run = [&]<class Element, class State>(Element const*, State const*) {
    conv1d_step<Element, State> step{};
    step.x = static_cast<Element const*>(arguments.x.data) + offset_of(arguments.x, b, first, c);
    step.x_pitch = arguments.x.stride(1);
    step.out = static_cast<Element*>(arguments.out.data) + offset_of(arguments.out, b, first, c);
    step.out_pitch = arguments.out.stride(1);
    auto const place = c * (step_width - 1);
    if (walk.has_state) {
      step.source =
          static_cast<State const*>(arguments.initial_states.data) + walk.state_offset + place;
    }
    if (target.exists) {
      step.target = static_cast<State*>(arguments.final_states.data) + target.offset + place;
    }
    step.weights = scratch.weights + c;
    step.weight_pitch = scratch.shape.channels;
    step.bias = scratch.bias + c;
    step.tokens = tokens;
    step.channels = count;
    step.act = problem.act;
    run_conv1d_step(step);
  };
  visit_type(problem.io, [&]<class Element>(Element const* element) {
    if (problem.state == problem.io) {
      run(element, element);
    } else {
      run(element, static_cast<float const*>(nullptr));
    }
  });
  return {c + count, channels.end};
}

// A whole short row from one line of raw inputs: its state and its tokens.
void run_short_row(conv1d_call const& call, conv1d_walk const& walk, channel_range const& channels,
                   conv1d_scratch const& scratch) noexcept {
  auto const& problem = call.problem;
  auto const& arguments = call.arguments;
  auto const& final_states = arguments.final_states;
  auto const history = scratch.shape.history;
  auto const first = walk.tokens.begin;
  auto const tokens = walk.tokens.end - first;
  staged_row const staged(call, walk, scratch);
  bool const is_state = walk.has_state && history == problem.state_len &&
                        detail::dropped_columns(problem, arguments, walk.row) == 0;
  if (!is_state) find_history(call, walk, first, true, history, scratch.places);
  for_each_block(channels, [&](std::int64_t c, std::int64_t count) {
    if (is_state) {
      staged.stage_state(c, count, scratch.line);
    } else {
      staged.stage_places(history, c, count, scratch.line);
    }
    auto* const line = scratch.line + history * block;
    for (std::int64_t i = 0; i < tokens; ++i) {
      staged.stage_token(first + i, c, count, line + i * block);
    }
    staged.convolve_line(line - (problem.width - 1) * block, first, tokens, c, count);
    for (auto token = problem.per_token_target ? 0 : tokens - 1; token < tokens; ++token) {
      auto const target = detail::target_of(problem, arguments, walk.row, token, tokens);
      if (!target.exists) continue;
      auto const channel_stride = final_states.stride(final_states.rank - 2);
      unstage_rows(final_states, target.offset + c * channel_stride,
                   final_states.stride(final_states.rank - 1), channel_stride, problem.state_len,
                   count, line + (token + 1 - problem.state_len) * block, block);
    }
  });
}

}  // namespace

void load_weights(conv1d_call const& call, channel_range const& channels,
                  conv1d_scratch const& scratch) noexcept {
  auto const& problem = call.problem;
  auto const& weight = call.arguments.weight;
  auto const& bias = call.arguments.bias;
  auto const c = channels.begin;
  auto const count = channels.end - c;
  stage_rows(weight, c * weight.stride(0), weight.stride(1), weight.stride(0), problem.width, count,
             scratch.weights + c, scratch.shape.channels);
  if (problem.has_bias) {
    stage_row(bias, c * bias.stride(0), bias.stride(0), count, scratch.bias + c);
  } else {
    std::fill_n(scratch.bias + c, count, 0.0F);
  }
}

void write_outputs(conv1d_call const& call, std::int64_t row, std::int64_t begin, std::int64_t end,
                   channel_range const& channels, conv1d_scratch const& scratch) noexcept {
  auto const& problem = call.problem;
  auto const past = problem.width - 1;
  if (detail::is_padding(problem, call.arguments, row)) {
    write_zeros(call, detail::row_of(problem, call.arguments, row).b, begin, end, channels);
    return;
  }
  conv1d_walk const walk(call, row);
  staged_row const staged(call, walk, scratch);
  while (begin < end) {
    auto const run = end_of_run(call, walk, begin, end);
    if (sequence_at(call, walk, begin) < 0) {
      write_zeros(call, walk.tokens.b, begin, run, channels);
      begin = run;
      continue;
    }
    // Tokens whose windows reach out of the run go through the line.
    auto left = past - tokens_in_line(call, walk, begin, past);
    while (left > 0 && begin < run) {
      auto const tokens = std::min({left, run - begin, scratch.shape.tokens});
      find_history(call, walk, begin, true, past, scratch.places);
      for_each_block(channels, [&](std::int64_t c, std::int64_t count) {
        staged.stage_places(past, c, count, scratch.line);
        for (std::int64_t i = 0; i < tokens; ++i) {
          staged.stage_token(begin + i, c, count, scratch.line + (past + i) * block);
        }
        staged.convolve_line(scratch.line, begin, tokens, c, count);
      });
      begin += tokens;
      left -= tokens;
    }
    if (begin < run) convolve_directly(call, walk, begin, run, channels, scratch);
    begin = run;
  }
}

void write_states(conv1d_call const& call, std::int64_t row, channel_range const& channels,
                  conv1d_scratch const& scratch) noexcept {
  auto const& problem = call.problem;
  auto const& arguments = call.arguments;
  auto const& states = arguments.final_states;
  auto const length = problem.state_len;
  if (!problem.has_final_states || detail::is_padding(problem, arguments, row)) return;
  conv1d_walk const walk(call, row);
  staged_row const staged(call, walk, scratch);
  auto const tokens = walk.tokens.end - walk.tokens.begin;
  auto const channel_stride = states.stride(states.rank - 2);
  auto const column_stride = states.stride(states.rank - 1);
  for_each_block(channels, [&](std::int64_t c, std::int64_t count) {
    // All of the initial state first: what is written may be the same memory.
    float* const initial = scratch.line;
    float* const columns = scratch.line + scratch.shape.history * block;
    if (walk.has_state) staged.stage_state(c, count, initial);
    for (auto token = problem.per_token_target ? 0 : tokens - 1; token < tokens; ++token) {
      auto const target = detail::target_of(problem, arguments, row, token, tokens);
      if (!target.exists) continue;
      find_state(call, walk, walk.tokens.begin + token + 1, scratch.places);
      for (std::int64_t column = 0; column < length; ++column) {
        auto const place = scratch.places[column];
        auto* const to = columns + column * block;
        if (place >= 0) {
          staged.stage_token(place, c, count, to);
        } else if (place == no_place) {
          std::fill_n(to, count, 0.0F);
        } else {
          std::copy_n(initial + column_of_place(place) * block, count, to);
        }
      }
      unstage_rows(states, target.offset + c * channel_stride, column_stride, channel_stride,
                   length, count, columns, block);
    }
  });
}

void run_row(conv1d_call const& call, std::int64_t row, channel_range const& channels,
             conv1d_scratch const& scratch) noexcept {
  auto const& problem = call.problem;
  auto const tokens = detail::row_of(problem, call.arguments, row);
  bool const is_plain = problem.pack != packing::seq_idx && !problem.circular &&
                        !detail::is_padding(problem, call.arguments, row);
  if (is_plain && tokens.end - tokens.begin <= scratch.shape.tokens) {
    conv1d_walk const walk(call, row);
    auto const left = is_step(call, walk) ? run_step(call, walk, channels, scratch) : channels;
    if (left.begin < left.end) run_short_row(call, walk, left, scratch);
    return;
  }
  write_outputs(call, row, tokens.begin, tokens.end, channels, scratch);
  write_states(call, row, channels, scratch);
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
