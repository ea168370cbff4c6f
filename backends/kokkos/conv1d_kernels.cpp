#include "conv1d_kernels.hpp"

#include <cstddef>
#include <cstdint>

#include "conv1d_call.hpp"
#include "convert.hpp"
#include "simd.hpp"
#include "unroll.hpp"
#include "vector_math.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

// A pack of `count` elements; Full says at compile time that count = pack_width.
template <bool Full, class Element>
MAMBATILE_ALWAYS_INLINE inline pack load_part(Element const* from, int count) noexcept {
  if constexpr (Full) {
    return load(from);
  } else {
    return load_first(from, count);
  }
}

template <bool Full, class Element>
MAMBATILE_ALWAYS_INLINE inline void store_part(Element* to, pack const& value, int count) noexcept {
  if constexpr (Full) {
    store(to, value);
  } else {
    store_first(to, value, count);
  }
}

template <class In, class Out>
struct channel_job {
  In const* in;
  std::int64_t in_pitch;
  Out* out;
  std::int64_t out_pitch;
  float const* weights;  // rows are padded to whole packs
  std::int64_t weight_pitch;
  float const* bias;
  std::int64_t width;
  bool is_silu;
};

// Tile outputs of one pack of channels; Width = 0: known at run time.
template <int Width, int Tile, bool Full, class In, class Out>
MAMBATILE_ALWAYS_INLINE inline void convolve_pack(channel_job<In, Out> const& job, std::int64_t c,
                                                  int count) noexcept {
  pack sums[std::size_t{Tile}];
  pack const bias = load(job.bias + c);
  unroll<Tile>([&](auto i) MAMBATILE_ALWAYS_INLINE { sums[i] = bias; });
  if constexpr (Width != 0) {
    pack window[std::size_t{Tile + Width - 1}];
    unroll<Tile + Width - 1>([&](auto row) MAMBATILE_ALWAYS_INLINE {
      window[row] = load_part<Full>(job.in + row * job.in_pitch + c, count);
    });
    unroll<Width>([&](auto k) MAMBATILE_ALWAYS_INLINE {
      pack const weight = load(job.weights + k * job.weight_pitch + c);
      unroll<Tile>([&](auto i)
                       MAMBATILE_ALWAYS_INLINE { sums[i] = fma(weight, window[i + k], sums[i]); });
    });
  } else {
    for (std::int64_t k = 0; k < job.width; ++k) {
      pack const weight = load(job.weights + k * job.weight_pitch + c);
      unroll<Tile>([&](auto i) MAMBATILE_ALWAYS_INLINE {
        sums[i] = fma(weight, load_part<Full>(job.in + (i + k) * job.in_pitch + c, count), sums[i]);
      });
    }
  }
  if (job.is_silu) {
    unroll<Tile>([&](auto i) MAMBATILE_ALWAYS_INLINE { sums[i] = silu(sums[i]); });
  }
  unroll<Tile>([&](auto i) MAMBATILE_ALWAYS_INLINE {
    store_part<Full>(job.out + i * job.out_pitch + c, sums[i], count);
  });
}

template <int Width, int Tile, class In, class Out>
void convolve_rows(channel_job<In, Out>& job, std::int64_t tokens, std::int64_t channels) noexcept {
  for (std::int64_t i = 0; i < tokens; i += Tile) {
    std::int64_t c = 0;
    for (; c + pack_width <= channels; c += pack_width) {
      convolve_pack<Width, Tile, true>(job, c, pack_width);
    }
    if (c < channels) {
      convolve_pack<Width, Tile, false>(job, c, static_cast<int>(channels - c));
    }
    job.in += Tile * job.in_pitch;
    job.out += Tile * job.out_pitch;
  }
}

template <int Width, class In, class Out>
void convolve_width(channel_job<In, Out>& job, std::int64_t tokens,
                    std::int64_t channels) noexcept {
  constexpr int tile = conv1d_tuned.token_tile;
  auto const whole = tokens / tile * tile;
  convolve_rows<Width, tile>(job, whole, channels);
  convolve_rows<Width, 1>(job, tokens - whole, channels);
}

}  // namespace

template <class In, class Out>
void convolve_channels(In const* in, std::int64_t in_pitch, Out* out, std::int64_t out_pitch,
                       std::int64_t tokens, std::int64_t channels, float const* weights,
                       std::int64_t weight_pitch, float const* bias, std::int64_t width,
                       activation act) noexcept {
  channel_job<In, Out> job{
      in, in_pitch, out, out_pitch, weights, weight_pitch, bias, width, act == activation::silu};
  if (width == 4) {
    convolve_width<4>(job, tokens, channels);
  } else {
    convolve_width<0>(job, tokens, channels);
  }
}

template <class Element>
void convolve_tokens(Element const* in, Element* out, std::int64_t tokens, float const* weights,
                     std::int64_t weight_pitch, float bias, std::int64_t width,
                     activation act) noexcept {
  auto const part = [&]<bool Full>(std::int64_t i, int count) MAMBATILE_ALWAYS_INLINE {
    pack sum(bias);
    for (std::int64_t k = 0; k < width; ++k) {
      sum = fma(pack(weights[k * weight_pitch]), load_part<Full>(in + i + k, count), sum);
    }
    store_part<Full>(out + i, act == activation::silu ? silu(sum) : sum, count);
  };
  std::int64_t i = 0;
  for (; i + pack_width <= tokens; i += pack_width) {
    part.template operator()<true>(i, pack_width);
  }
  if (i < tokens) part.template operator()<false>(i, static_cast<int>(tokens - i));
}

#define MAMBATILE_CONVOLVE_CHANNELS(In, Out)                                                 \
  template void convolve_channels(In const*, std::int64_t, Out*, std::int64_t, std::int64_t, \
                                  std::int64_t, float const*, std::int64_t, float const*,    \
                                  std::int64_t, activation) noexcept
#define MAMBATILE_CONVOLVE_TOKENS(Element)                                            \
  template void convolve_tokens(Element const*, Element*, std::int64_t, float const*, \
                                std::int64_t, float, std::int64_t, activation) noexcept

MAMBATILE_CONVOLVE_CHANNELS(float, float);
MAMBATILE_CONVOLVE_CHANNELS(float, bfloat16);
MAMBATILE_CONVOLVE_CHANNELS(float, float16);
MAMBATILE_CONVOLVE_CHANNELS(bfloat16, bfloat16);
MAMBATILE_CONVOLVE_CHANNELS(float16, float16);
MAMBATILE_CONVOLVE_TOKENS(float);
MAMBATILE_CONVOLVE_TOKENS(bfloat16);
MAMBATILE_CONVOLVE_TOKENS(float16);

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
