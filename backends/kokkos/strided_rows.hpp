#pragma once

#include <cstdint>

#include <mambatile/tensor_view.hpp>

// Runs of elements of any type and stride to and from f32, and a few runs interleaved: what brings
// tensors with a slow order into a fast one. Conversions of 16-bit numbers to f32 and back are
// exact.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// `count` elements from `offset` on, `stride` apart (both in elements), to consecutive f32.
void stage_row(const_tensor_view const& from, std::int64_t offset, std::int64_t stride,
               std::int64_t count, float* to) noexcept;

/// `rows` runs at once, run r from `offset + r * row_stride`; `to` has its runs `pitch` apart.
void stage_rows(const_tensor_view const& from, std::int64_t offset, std::int64_t row_stride,
                std::int64_t stride, std::int64_t rows, std::int64_t count, float* to,
                std::int64_t pitch) noexcept;

/// Consecutive f32 to `count` elements from `offset` on, `stride` apart; each rounded once.
void unstage_row(tensor_view const& to, std::int64_t offset, std::int64_t stride,
                 std::int64_t count, float const* from) noexcept;

/// `rows` runs at once, run r to `offset + r * row_stride`; `from` has its runs `pitch` apart.
void unstage_rows(tensor_view const& to, std::int64_t offset, std::int64_t row_stride,
                  std::int64_t stride, std::int64_t rows, std::int64_t count, float const* from,
                  std::int64_t pitch) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
