#pragma once

#include <cstdint>

#include "simd.hpp"
#include "tuning_scan.hpp"

// The seam between the scan and its register tiles. A tile is some rows of `vectors` packs. All
// matrices are f32; a product's left factor is stored with its rows innermost.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

inline constexpr scan_tuning const& tuning = scan_tuning_for(pack_width);
/// Columns of a panel.
inline constexpr int panel_width = tuning.tile_vectors * pack_width;

/// sum over k < count of left[k * left_stride + row] * right[k * right_stride + column]
struct tile_product {
  float const* left;
  std::int64_t left_stride;
  float const* right;
  std::int64_t right_stride;
  std::int64_t count;
};

/// target = sum over k < count of left[row * left_stride + k] * right[k * right_stride + column]:
/// the left factor has its rows outermost.
struct product_tile {
  float const* left;
  std::int64_t left_stride;
  float const* right;
  std::int64_t right_stride;
  std::int64_t count;
  float* target;
  std::int64_t target_stride;
};

/// target = last_scale * (first_scale * source + product), or last_scale * product from zero.
/// source and target may be the same.
struct update_tile {
  tile_product product;
  float const* source;
  std::int64_t source_stride;
  float* target;
  std::int64_t target_stride;
  float first_scale;
  float last_scale;
  bool from_zero;
};

/// out = state product, rows scaled before or after `within` is added, plus skip * x.
/// `within` has `count` full columns; behind them comes the triangle of the tile's own tokens: row
/// r takes part in r + 1 of them.
struct output_tile {
  tile_product state;
  tile_product within;
  float const* row_scale;
  bool scale_first;
  float const* skip;  ///< one panel wide; null = none
  float const* x;     ///< with skip
  std::int64_t x_stride;
  float* out;
  std::int64_t out_stride;
};

/// Token by token: state = decay[t] * state + b[t] (outer) x[t], out[t] = c[t] . state. The state
/// comes from source and goes to target, which may be the same.
struct recurrence_tile {
  float const* source;
  std::int64_t source_stride;
  float* target;
  std::int64_t target_stride;
  std::int64_t dstate;
  float const* b;
  float const* c;
  std::int64_t bc_stride;
  float const* x;  ///< times delta
  std::int64_t x_stride;
  float const* decay;
  float* out;
  std::int64_t out_stride;
};

/// Tokens that one recurrence tile takes.
inline constexpr int recurrence_tokens = vector_registers >= 32 ? 4 : 2;
/// Most rows of a product tile.
inline constexpr int product_rows = tuning.product_rows;
static_assert(product_rows <= tuning.tile_rows);

// 1 <= rows <= tuning.tile_rows (of a product tile product_rows), 1 <= vectors <=
// tuning.tile_vectors, 1 <= tokens <= recurrence_tokens.
void run(product_tile const& tile, int rows, int vectors) noexcept;
void run(update_tile const& tile, int rows, int vectors) noexcept;
void run(output_tile const& tile, int rows, int vectors) noexcept;
void run(recurrence_tile const& tile, int tokens, int vectors) noexcept;

/// Cuts `count` rows into the fewest tiles of at most `most_rows`, as even as possible, and calls
/// visit(first, rows).
template <class Visit>
inline void for_each_tile(std::int64_t count, int most_rows, Visit const& visit) {
  if (count == 0) return;
  std::int64_t const tiles = (count + most_rows - 1) / most_rows;
  std::int64_t const rows = count / tiles;
  std::int64_t const larger_tiles = count % tiles;
  std::int64_t first = 0;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    std::int64_t const here = rows + (tile < larger_tiles ? 1 : 0);
    visit(first, static_cast<int>(here));
    first += here;
  }
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
