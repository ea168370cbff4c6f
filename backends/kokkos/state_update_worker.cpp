#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "argument_checks.hpp"
#include "convert.hpp"
#include "state_copy.hpp"
#include "state_step.hpp"
#include "state_update_call.hpp"
#include "state_update_forms.hpp"
#include "step_size.hpp"
#include "unroll.hpp"
#include "vector_math.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

[[nodiscard]] std::int64_t in_packs(std::int64_t count) noexcept {
  return (count + pack_width - 1) / pack_width * pack_width;
}

// `count` elements, `stride` apart, as f32.
void read(const_tensor_view const& from, std::int64_t offset, std::int64_t stride,
          std::int64_t count, float* to) noexcept {
  visit_type(from.type, [&]<class Element>(Element const*) {
    auto const* data = static_cast<Element const*>(from.data) + offset;
    if (stride == 1) {
      std::int64_t i = 0;
      for (; i + pack_width <= count; i += pack_width) store(to + i, load(data + i));
      if (i < count) store(to + i, load_first(data + i, static_cast<int>(count - i)));
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(data[i * stride]);
    }
  });
}

// visit.operator()<Full>(first, how many) for the packs of `count` elements.
template <class Visit>
MAMBATILE_ALWAYS_INLINE inline void for_each_pack(std::int64_t count, Visit const& visit) {
  std::int64_t i = 0;
  for (; i + pack_width <= count; i += pack_width) visit.template operator()<true>(i, pack_width);
  if (i < count) visit.template operator()<false>(i, static_cast<int>(count - i));
}

// Offset of the first of a part's channels in x, z or out.
[[nodiscard]] std::int64_t offset_of(const_tensor_view const& view, update_part const& part,
                                     std::int64_t token) noexcept {
  return part.row * view.stride(0) + token * view.stride(1) + part.head * view.stride(2) +
         part.first * view.stride(3);
}

}  // namespace

std::size_t cut_update_scratch(state_update_problem const& problem, void* memory,
                               update_scratch& scratch) noexcept {
  constexpr std::size_t line_bytes = 64;
  std::size_t used = 0;
  auto const take = [&](std::int64_t count) {
    auto* const piece =
        memory == nullptr ? nullptr : reinterpret_cast<float*>(static_cast<char*>(memory) + used);
    auto const bytes = static_cast<std::size_t>(count) * sizeof(float);
    used += (bytes + line_bytes - 1) / line_bytes * line_bytes;
    return piece;
  };
  auto const tokens = problem.max_seqlen;
  auto const headdim = in_packs(problem.headdim);
  scratch.dstate_stride = in_packs(problem.dstate);
  scratch.heads_stride = in_packs(problem.nheads);
  scratch.b = take(tokens * scratch.dstate_stride);
  scratch.c = take(tokens * scratch.dstate_stride);
  scratch.delta = take(tokens * scratch.heads_stride);
  scratch.decay = take(tokens * scratch.heads_stride);
  scratch.x = take(headdim);
  scratch.dx = take(headdim);
  scratch.y = take(headdim);
  scratch.skip = take(headdim);
  scratch.state = take(std::max(headdim * problem.dstate, problem.headdim * scratch.dstate_stride));
  return used;
}

update_worker::update_worker(state_update_problem const& problem,
                             state_update_arguments const& arguments, void* memory,
                             bool prefetch) noexcept
    : problem_(problem), arguments_(arguments), prefetch_(prefetch) {
  cut_update_scratch(problem, memory, scratch_);
}

void update_worker::start_row(std::int64_t row, std::int64_t first_head,
                              std::int64_t end_head) noexcept {
  row_ = row;
  group_ = -1;
  auto const& dt = arguments_.dt;
  auto const count = end_head - first_head;
  for (std::int64_t token = 0; token < dt.extent(1); ++token) {
    float* const delta = scratch_.delta + token * scratch_.heads_stride;
    float* const decay = scratch_.decay + token * scratch_.heads_stride;
    read(dt, row * dt.stride(0) + token * dt.stride(1) + first_head * dt.stride(2), dt.stride(2),
         count, delta);
    // x and y are free here.
    for (std::int64_t h = 0; h < count; h += pack_width) {
      auto const part = std::min<std::int64_t>(count - h, pack_width);
      alignas(sizeof(pack)) float A[pack_width] = {};
      alignas(sizeof(pack)) float bias[pack_width] = {};
      auto const head = first_head + h;
      read(arguments_.A, head * arguments_.A.stride(0), arguments_.A.stride(0), part, A);
      if (problem_.has_dt_bias) {
        read(arguments_.dt_bias, head * arguments_.dt_bias.stride(0), arguments_.dt_bias.stride(0),
             part, bias);
      }
      // Lanes beyond the heads hold whatever they hold; nothing reads their results.
      pack const step =
          step_size(load(delta + h) + load(bias), problem_.dt_softplus, problem_.dt_limit);
      store(delta + h, step);
      store(decay + h, exp(step * load(A)));
    }
  }
  first_head_ = first_head;
}

void update_worker::start_group(std::int64_t group) noexcept {
  group_ = group;
  for (auto const& [from, to] :
       {std::pair{&arguments_.B, scratch_.b}, {&arguments_.C, scratch_.c}}) {
    for (std::int64_t token = 0; token < from->extent(1); ++token) {
      read(*from, row_ * from->stride(0) + token * from->stride(1) + group * from->stride(2),
           from->stride(3), problem_.dstate, to + token * scratch_.dstate_stride);
    }
  }
}

state_ref update_worker::in_tensor(const_tensor_view const& states, detail::state_place place,
                                   update_part const& part) const noexcept {
  if (!place.exists) return {};
  auto const headdim_stride = states.stride(states.rank - 2);
  auto const offset =
      place.offset + part.head * states.stride(states.rank - 3) + part.first * headdim_stride;
  // Targets are views that may be written.
  auto* const data = static_cast<char*>(const_cast<void*>(states.data)) +
                     offset * static_cast<std::int64_t>(size_of(states.type));
  return {data, states.type, headdim_stride, states.stride(states.rank - 1)};
}

state_ref update_worker::in_scratch(bool by_channel) const noexcept {
  if (by_channel)
    return {scratch_.state, dtype::f32, 1,
            (problem_.headdim + pack_width - 1) / pack_width * pack_width};
  return {scratch_.state, dtype::f32, scratch_.dstate_stride, 1};
}

void update_worker::read_inputs(update_part const& part, std::int64_t token) noexcept {
  auto const& x = arguments_.x;
  pack const delta(scratch_.delta[token * scratch_.heads_stride + part.head - first_head_]);
  visit_type(x.type, [&]<class Element>(Element const*) {
    auto const* const from = static_cast<Element const*>(x.data) + offset_of(x, part, token);
    for_each_pack(part.end - part.first, [&]<bool Full>(std::int64_t p, int count) {
      pack const value = Full ? load(from + p) : load_first(from + p, count);
      store(scratch_.x + p, value);
      store(scratch_.dx + p, delta * value);
    });
  });
}

void update_worker::write_out(update_part const& part, std::int64_t token) noexcept {
  auto const& out = arguments_.out;
  auto const& z = arguments_.z;
  visit_type(out.type, [&]<class Element>(Element const*) {
    auto* const to = static_cast<Element*>(out.data) + offset_of(out, part, token);
    auto const* const gate =
        problem_.has_z ? static_cast<Element const*>(z.data) + offset_of(z, part, token) : nullptr;
    for_each_pack(part.end - part.first, [&]<bool Full>(std::int64_t p, int count) {
      pack value = load(scratch_.y + p);
      if (problem_.D != skip::none) {
        value = fma(load(scratch_.skip + p), load(scratch_.x + p), value);
      }
      if (gate != nullptr) {
        value = value * silu(Full ? load(gate + p) : load_first(gate + p, count));
      }
      if constexpr (Full) {
        store(to + p, value);
      } else {
        store_first(to + p, value, count);
      }
    });
  });
}

void update_worker::step(update_part const& part, std::int64_t token, state_ref const& from,
                         state_ref const& to) noexcept {
  read_inputs(part, token);
  bool const by_channel = from.is_by_channel();
  auto const stride = [&](state_ref const& state) {
    return by_channel ? state.dstate_stride : state.headdim_stride;
  };
  step_lines const lines{from.data,
                         from.type,
                         stride(from),
                         to.data,
                         to.type,
                         stride(to),
                         prefetch_ && from.data != scratch_.state};
  step_token const values{scratch_.decay[token * scratch_.heads_stride + part.head - first_head_],
                          scratch_.b + token * scratch_.dstate_stride,
                          scratch_.c + token * scratch_.dstate_stride, scratch_.dx, scratch_.y};
  auto const channels = part.end - part.first;
  if (by_channel) {
    step_by_channel(lines, values, channels, problem_.dstate);
  } else {
    step_by_element(lines, values, channels, problem_.dstate);
  }
  write_out(part, token);
}

void update_worker::store_state(update_part const& part, std::int64_t token, state_ref const& from,
                                state_ref const& to) const noexcept {
  state_extent const extent{part.end - part.first, problem_.dstate};
  if (problem_.state_rounding == rounding::nearest) {
    copy_state(from, to, extent);
    return;
  }
  auto const id = problem_.has_row_ids ? detail::index_at(arguments_.row_ids, part.row)
                                       : static_cast<std::int32_t>(part.row);
  auto const key = detail::make_rounding_key(arguments_.rounding_seed, id, part.head, token);
  copy_state_stochastically(from, to, extent, key, part.first);
}

void update_worker::run(update_part const& part) noexcept {
  auto const tokens = arguments_.x.extent(1);
  auto const group = part.head / (problem_.nheads / problem_.ngroups);
  if (group != group_) start_group(group);
  auto const& D = arguments_.D;
  if (problem_.D == skip::per_channel) {
    read(D, part.head * D.stride(0) + part.first * D.stride(1), D.stride(1), part.end - part.first,
         scratch_.skip);
  } else if (problem_.D == skip::per_head) {
    pack const of_head(element_at(D.data, D.type, part.head * D.stride(0)));
    for (auto p = part.first; p < part.end; p += pack_width) {
      store(scratch_.skip + (p - part.first), of_head);
    }
  }

  state_extent const extent{part.end - part.first, problem_.dstate};
  auto const target = [&](std::int64_t token) {
    return in_tensor(arguments_.final_states,
                     detail::target_of(problem_, arguments_, part.row, token, tokens), part);
  };
  auto current =
      in_tensor(arguments_.initial_states, detail::source_of(problem_, arguments_, part.row), part);
  if (tokens == 0) {
    if (problem_.per_token_target) return;
    auto const to = in_tensor(arguments_.final_states,
                              detail::target_of(problem_, arguments_, part.row, -1, 0), part);
    if (!to.exists()) return;
    if (current.exists()) {
      if (current.data != to.data) copy_state(current, to, extent);
    } else {
      clear_state(to, extent);
    }
    return;
  }
  if (!current.exists()) {
    current = in_scratch(!arguments_.final_states ||
                         in_tensor(arguments_.final_states, {true, 0}, part).is_by_channel());
    clear_state(current, extent);
  } else if (!current.is_by_channel() && !current.is_by_element()) {
    auto const scratch = in_scratch(true);
    copy_state(current, scratch, extent);
    current = scratch;
  }
  for (std::int64_t token = 0; token < tokens; ++token) {
    auto const to = target(token);
    bool const is_last = token == tokens - 1;
    // A state that is stored with its digits can be gone on with where it is stored.
    bool const same_order =
        to.exists() && (current.is_by_channel() ? to.is_by_channel() : to.is_by_element());
    bool const same_type = to.type == current.type && problem_.state_rounding == rounding::nearest;
    bool const direct = same_order && same_type && (is_last || to.type == dtype::f32);
    if (direct) {
      step(part, token, current, to);
      current = to;
    } else if (is_last && !to.exists()) {
      step(part, token, current, {});
    } else {
      auto const scratch = in_scratch(current.is_by_channel());
      step(part, token, current, scratch);
      if (to.exists()) store_state(part, token, scratch, to);
      current = scratch;
    }
  }
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
