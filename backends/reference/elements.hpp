#pragma once

#include <cstdint>

#include <mambatile/dtype.hpp>
#include <mambatile/tensor_view.hpp>

#include "rounding.hpp"

// Elements of any floating-point type as f64, and back with one rounding.

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace reference {

/// Calls `visit` with a value of the C++ type that stores `type`, one of the floating-point types.
template <class Visitor>
void with_element(dtype type, Visitor const& visit) {
  switch (type) {
    case dtype::f32: visit(float{}); break;
    case dtype::bf16: visit(bfloat16{}); break;
    case dtype::f16: visit(float16{}); break;
    case dtype::i32: break;
  }
}

/// Reads `count` elements from `offset` on, `stride` apart, both in elements.
inline void load(const_tensor_view const& from, std::int64_t offset, std::int64_t stride,
                 std::int64_t count, double* to) {
  with_element(from.type, [&](auto kind) {
    auto const* const data = static_cast<decltype(kind) const*>(from.data);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<double>(static_cast<float>(data[offset + i * stride]));
    }
  });
}

[[nodiscard]] inline double load(const_tensor_view const& from, std::int64_t offset) {
  double value = 0.0;
  load(from, offset, 0, 1, &value);
  return value;
}

/// The last axis of a tensor of rank 4 at [first, second, third].
inline void load_last_axis(const_tensor_view const& from, std::int64_t first, std::int64_t second,
                           std::int64_t third, double* to) {
  load(from, first * from.stride(0) + second * from.stride(1) + third * from.stride(2),
       from.stride(3), from.extent(3), to);
}

/// Element h of a parameter (nheads); 0 where it is absent.
[[nodiscard]] inline double load_of_head(const_tensor_view const& from, std::int64_t h) {
  return from ? load(from, h * from.stride(0)) : 0.0;
}

/// Row h of D, (nheads) or (nheads, headdim); nothing where it is absent.
inline void load_skip(const_tensor_view const& D, std::int64_t h, std::int64_t headdim,
                      double* to) {
  if (D) load(D, h * D.stride(0), D.rank == 2 ? D.stride(1) : 0, headdim, to);
}

/// One head's state at an offset in elements, (headdim, dstate) on the last two axes, as (dstate,
/// headdim).
inline void load_state(const_tensor_view const& from, std::int64_t offset, double* to) {
  auto const headdim = from.extent(from.rank - 2);
  for (std::int64_t n = 0; n < from.extent(from.rank - 1); ++n) {
    load(from, offset + n * from.stride(from.rank - 1), from.stride(from.rank - 2), headdim,
         to + n * headdim);
  }
}

/// Writes `count` numbers to elements from `offset` on, `stride` apart.
inline void store(tensor_view const& to, std::int64_t offset, std::int64_t stride,
                  std::int64_t count, double const* from) {
  with_element(to.type, [&](auto kind) {
    auto* const data = static_cast<decltype(kind)*>(to.data);
    for (std::int64_t i = 0; i < count; ++i) {
      data[offset + i * stride] = round_to<decltype(kind)>(from[i]);
    }
  });
}

}  // namespace reference
}  // namespace detail
}  // namespace v0
}  // namespace mambatile
