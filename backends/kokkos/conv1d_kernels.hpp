#pragma once

#include <cstdint>

#include <mambatile/conv1d.hpp>

// The arithmetic of the convolution. Every output is bias + w_0 raw_0 + ... in this order, one fma
// a tap, whichever kernel computes it: the kernels agree bit for bit.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// Channels innermost: output (i, c) is made of the input rows i .. i + width - 1.
///   in (tokens + width - 1, channels), out (tokens, channels), weights (width, weight_pitch), f32,
///   bias (channels), f32. Pitches are elements between rows; inner strides are 1.
/// In is float for staged inputs, else the io type; Out likewise.
template <class In, class Out>
void convolve_channels(In const* in, std::int64_t in_pitch, Out* out, std::int64_t out_pitch,
                       std::int64_t tokens, std::int64_t channels, float const* weights,
                       std::int64_t weight_pitch, float const* bias, std::int64_t width,
                       activation act) noexcept;

/// Tokens innermost, one channel: output i is made of in[i] .. in[i + width - 1]; both have stride
/// 1. weights (width) are `weight_pitch` apart.
template <class Element>
void convolve_tokens(Element const* in, Element* out, std::int64_t tokens, float const* weights,
                     std::int64_t weight_pitch, float bias, std::int64_t width,
                     activation act) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
