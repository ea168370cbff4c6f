#pragma once

#include <bit>
#include <utility>

#include "simd.hpp"
#include "unroll.hpp"

// Transpose of a square of pack_width x pack_width in registers.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define MAMBATILE_HAS_SHUFFLE 1
#endif
#endif

#ifdef MAMBATILE_HAS_SHUFFLE

namespace transposing {

using vector = float __attribute__((vector_size(sizeof(pack))));

// Lanes of a and b in turn, from a's lane `First` on.
template <int First, int... Lane>
MAMBATILE_ALWAYS_INLINE inline pack interleave(pack const& a, pack const& b,
                                               std::integer_sequence<int, Lane...>) {
  auto const left = std::bit_cast<vector>(a);
  auto const right = std::bit_cast<vector>(b);
  return std::bit_cast<pack>(__builtin_shufflevector(
      left, right, (First + Lane / 2 + (Lane % 2 == 0 ? 0 : pack_width))...));
}

}  // namespace transposing

/// rows[i] lane j becomes rows[j] lane i.
MAMBATILE_ALWAYS_INLINE inline void transpose(pack (&rows)[pack_width]) {
  if constexpr (pack_width > 1) {
    constexpr auto lanes = std::make_integer_sequence<int, pack_width>{};
    constexpr int half = pack_width / 2;
    constexpr int stages = std::countr_zero(static_cast<unsigned>(pack_width));
    // Each stage rotates the bits of (row, lane) by one place.
    unroll<stages>([&](auto) MAMBATILE_ALWAYS_INLINE {
      pack next[pack_width];
      unroll<half>([&](auto i) MAMBATILE_ALWAYS_INLINE {
        next[2 * i] = transposing::interleave<0>(rows[i], rows[i + half], lanes);
        next[2 * i + 1] = transposing::interleave<half>(rows[i], rows[i + half], lanes);
      });
      unroll<pack_width>([&](auto i) MAMBATILE_ALWAYS_INLINE { rows[i] = next[i]; });
    });
  }
}

#else

inline void transpose(pack (&rows)[pack_width]) {
  alignas(sizeof(pack)) float square[pack_width][pack_width];
  for (int i = 0; i < pack_width; ++i) {
    rows[i].copy_to(square[i], Kokkos::Experimental::simd_flag_aligned);
  }
  for (int i = 0; i < pack_width; ++i) {
    rows[i] = pack([&](std::size_t lane) { return square[lane][i]; });
  }
}

#endif

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
