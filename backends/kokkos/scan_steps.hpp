#pragma once

#include <array>
#include <cstdint>

#include <mambatile/dtype.hpp>

// From raw steps to decays: what one head needs to know about the tokens of one piece.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// Parameters of one head's steps.
struct step_rule {
  float A;
  float bias;
  bool softplus;
  std::array<float, 2> limit;
};

/// Scratch and results for one piece, each array as long as the longest piece rounded up to packs.
/// a_i = sum over tokens 0..i of delta A.
struct piece_steps {
  float* delta;
  float* high;    ///< a_i as f32
  float* low;     ///< what that lost
  float* row;     ///< exp(a_i)
  float* weight;  ///< factored: exp(-a_j) delta_j; else exp(a_last - a_j) delta_j
  double total;   ///< a_last
  float decay;    ///< exp(a_last)
  bool factored;  ///< small enough a total that exp(a_i - a_j) may be exp(a_i) exp(-a_j)
};

/// delta of `count` tokens.
void compute_deltas(void const* dt, dtype type, std::int64_t stride, std::int64_t count,
                    step_rule const& rule, float* delta) noexcept;

/// Everything else in piece_steps, from delta.
void compute_decays(std::int64_t count, float A, piece_steps& steps) noexcept;

/// Token by token: row[i] = exp(delta_i A), weight[i] = delta_i; also total.
void compute_token_decays(std::int64_t count, float A, piece_steps& steps) noexcept;

/// target[j][i] = products[j][i] exp(a_i - a_j) delta_j for i >= j, i < count; what lies before the
/// diagonal is undefined. Both have row stride `stride`.
void weigh_products(piece_steps const& steps, std::int64_t count, float const* products,
                    float* target, std::int64_t stride) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
