#pragma once

#include <utility>

// Loops that must be unrolled for their arrays to live in registers.

#define MAMBATILE_ALWAYS_INLINE __attribute__((always_inline))

/// In front of a loop of few, constant steps.
#if defined(__clang__)
#define MAMBATILE_UNROLL _Pragma("unroll")
#else
#define MAMBATILE_UNROLL _Pragma("GCC unroll 32")
#endif

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// function(constant 0), ..., function(constant Count - 1).
template <int Count, class Function>
MAMBATILE_ALWAYS_INLINE inline void unroll(Function const& function) {
  [&]<int... Index>(std::integer_sequence<int, Index...>) MAMBATILE_ALWAYS_INLINE {
    (function(std::integral_constant<int, Index>{}), ...);
  }
  (std::make_integer_sequence<int, Count>{});
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
