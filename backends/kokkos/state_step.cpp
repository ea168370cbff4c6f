#include "state_step.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "convert.hpp"
#include "transpose.hpp"
#include "tuning_state_update.hpp"
#include "unroll.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

constexpr state_update_tuning const& tuning = state_update_tuning_for(pack_width);
constexpr std::int64_t line_bytes = 64;

struct no_target {};

// Asks for the pack that lies tuning.prefetch_bytes behind `from`, once a cache line.
template <bool Prefetch, class Element>
MAMBATILE_ALWAYS_INLINE inline void prefetch_ahead(Element const* from) noexcept {
  if constexpr (Prefetch) {
    __builtin_prefetch(reinterpret_cast<char const*>(from) + tuning.prefetch_bytes);
  }
}

template <class Target>
MAMBATILE_ALWAYS_INLINE inline void store_if(Target* to, std::int64_t at,
                                             pack const& value) noexcept {
  if constexpr (!std::is_same_v<Target, no_target>) store(to + at, value);
}
template <class Target>
MAMBATILE_ALWAYS_INLINE inline void store_first_if(Target* to, std::int64_t at, pack const& value,
                                                   int count) noexcept {
  if constexpr (!std::is_same_v<Target, no_target>) store_first(to + at, value, count);
}

// A panel of Vectors packs of channels, down all state elements.
template <int Vectors, bool Prefetch, class Source, class Target>
void panel_by_channel(Source const* from, std::int64_t from_stride, Target* to,
                      std::int64_t to_stride, step_token const& token, std::int64_t first,
                      std::int64_t dstate) noexcept {
  constexpr auto per_line = line_bytes / static_cast<std::int64_t>(sizeof(Source));
  pack dx[static_cast<std::size_t>(Vectors)];
  pack y[static_cast<std::size_t>(Vectors)];
  unroll<Vectors>([&](auto v) MAMBATILE_ALWAYS_INLINE {
    dx[v] = load(token.dx + first + v * pack_width);
    y[v] = pack(0.0F);
  });
  pack const decay(token.decay);
  from += first;
  if constexpr (!std::is_same_v<Target, no_target>) to += first;
  for (std::int64_t n = 0; n < dstate; ++n) {
    pack const b(token.b[n]);
    pack const c(token.c[n]);
    unroll<Vectors>([&](auto v) MAMBATILE_ALWAYS_INLINE {
      constexpr std::int64_t at = v * pack_width;
      if constexpr (at % per_line == 0) prefetch_ahead<Prefetch>(from + at);
      pack const state = fma(decay, load(from + at), b * dx[v]);
      store_if(to, at, state);
      y[v] = fma(c, state, y[v]);
    });
    from += from_stride;
    if constexpr (!std::is_same_v<Target, no_target>) to += to_stride;
  }
  unroll<Vectors>([&](auto v)
                      MAMBATILE_ALWAYS_INLINE { store(token.y + first + v * pack_width, y[v]); });
}

// The last channels, fewer than a pack.
template <class Source, class Target>
void tail_by_channel(Source const* from, std::int64_t from_stride, Target* to,
                     std::int64_t to_stride, step_token const& token, std::int64_t first,
                     std::int64_t dstate, int count) noexcept {
  pack const dx = load_first(token.dx + first, count);
  pack y(0.0F);
  pack const decay(token.decay);
  for (std::int64_t n = 0; n < dstate; ++n) {
    pack const old = load_first(from + n * from_stride + first, count);
    pack const state = fma(decay, old, pack(token.b[n]) * dx);
    store_first_if(to, n * to_stride + first, state, count);
    y = fma(pack(token.c[n]), state, y);
  }
  store(token.y + first, y);
}

template <bool Prefetch, class Source, class Target>
void by_channel(Source const* from, std::int64_t from_stride, Target* to, std::int64_t to_stride,
                step_token const& token, std::int64_t channels, std::int64_t dstate) noexcept {
  std::int64_t first = 0;
  auto const panels = [&]<int Vectors>() {
    while (channels - first >= Vectors * pack_width) {
      panel_by_channel<Vectors, Prefetch>(from, from_stride, to, to_stride, token, first, dstate);
      first += Vectors * pack_width;
    }
  };
  panels.template operator()<tuning.panel_vectors>();
  panels.template operator()<tuning.panel_vectors / 2>();
  panels.template operator()<1>();
  if (first < channels) {
    tail_by_channel(from, from_stride, to, to_stride, token, first, dstate,
                    static_cast<int>(channels - first));
  }
}

// Rows channels along all state elements; partial sums of y go to sums.
template <int Rows, bool Prefetch, class Source, class Target>
MAMBATILE_ALWAYS_INLINE inline void rows_by_element(Source const* from, std::int64_t from_stride,
                                                    Target* to, std::int64_t to_stride,
                                                    step_token const& token, std::int64_t first,
                                                    std::int64_t dstate, pack* sums) noexcept {
  pack const decay(token.decay);
  pack dx[static_cast<std::size_t>(Rows)];
  pack y[static_cast<std::size_t>(Rows)];
  unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE {
    dx[r] = pack(token.dx[first + r]);
    y[r] = pack(0.0F);
  });
  constexpr auto per_line = line_bytes / static_cast<std::int64_t>(sizeof(Source));
  std::int64_t n = 0;
  for (; n + pack_width <= dstate; n += pack_width) {
    pack const b = load(token.b + n);
    pack const c = load(token.c + n);
    unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE {
      Source const* const at = from + r * from_stride + n;
      if (per_line <= pack_width || n % per_line == 0) prefetch_ahead<Prefetch>(at);
      pack const state = fma(decay, load(at), b * dx[r]);
      store_if(to, r * to_stride + n, state);
      y[r] = fma(c, state, y[r]);
    });
  }
  if (n < dstate) {
    int const count = static_cast<int>(dstate - n);
    pack const b = load_first(token.b + n, count);
    pack const c = load_first(token.c + n, count);
    unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE {
      pack const old = load_first(from + r * from_stride + n, count);
      pack const state = fma(decay, old, b * dx[r]);
      store_first_if(to, r * to_stride + n, state, count);
      y[r] = fma(c, state, y[r]);
    });
  }
  unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE { sums[r] = y[r]; });
}

template <bool Prefetch, class Source, class Target>
void by_element(Source const* from, std::int64_t from_stride, Target* to, std::int64_t to_stride,
                step_token const& token, std::int64_t channels, std::int64_t dstate) noexcept {
  constexpr int together = tuning.rows_together;
  static_assert(pack_width % together == 0);
  for (std::int64_t first = 0; first < channels; first += pack_width) {
    auto const count = std::min<std::int64_t>(pack_width, channels - first);
    pack sums[pack_width];
    std::int64_t r = 0;
    auto const to_row = [&](std::int64_t row) {
      if constexpr (std::is_same_v<Target, no_target>) {
        return to;
      } else {
        return to + (first + row) * to_stride;
      }
    };
    for (; r + together <= count; r += together) {
      rows_by_element<together, Prefetch>(from + (first + r) * from_stride, from_stride, to_row(r),
                                          to_stride, token, first + r, dstate, sums + r);
    }
    for (; r < count; ++r) {
      rows_by_element<1, Prefetch>(from + (first + r) * from_stride, from_stride, to_row(r),
                                   to_stride, token, first + r, dstate, sums + r);
    }
    for (; r < pack_width; ++r) sums[r] = pack(0.0F);
    // Lane l of the sum of the transposed packs is the sum over row l.
    transpose(sums);
    for (int half = pack_width / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
    }
    store(token.y + first, sums[0]);
  }
}

// Calls run<Prefetch>(from, to) with the types of the lines. A target is of the source's type, or
// f32.
template <class Run>
void visit_lines(step_lines const& lines, Run const& run) noexcept {
  visit_type(lines.from_type, [&]<class Source>(Source const*) {
    auto const* const from = static_cast<Source const*>(lines.from);
    auto const with = [&]<class Target>(Target* to) {
      if (lines.prefetch) {
        run.template operator()<true>(from, to);
      } else {
        run.template operator()<false>(from, to);
      }
    };
    if (lines.to == nullptr) {
      with(static_cast<no_target*>(nullptr));
    } else if (lines.to_type == lines.from_type) {
      with(static_cast<Source*>(lines.to));
    } else {
      with(static_cast<float*>(lines.to));
    }
  });
}

}  // namespace

void step_by_channel(step_lines const& lines, step_token const& token, std::int64_t channels,
                     std::int64_t dstate) noexcept {
  visit_lines(lines, [&]<bool Prefetch>(auto const* from, auto* to) {
    by_channel<Prefetch>(from, lines.from_stride, to, lines.to_stride, token, channels, dstate);
  });
}

void step_by_element(step_lines const& lines, step_token const& token, std::int64_t channels,
                     std::int64_t dstate) noexcept {
  visit_lines(lines, [&]<bool Prefetch>(auto const* from, auto* to) {
    by_element<Prefetch>(from, lines.from_stride, to, lines.to_stride, token, channels, dstate);
  });
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
