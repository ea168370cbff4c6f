#include "scan_tiles.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "convert.hpp"
#include "unroll.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

// Sums of a tile; every loop over them is unrolled, so that they live in registers.
template <int Rows, int Vectors>
struct tile_registers {
  pack sums[static_cast<std::size_t>(Rows)][static_cast<std::size_t>(Vectors)];

  MAMBATILE_ALWAYS_INLINE void clear() noexcept {
    MAMBATILE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      MAMBATILE_UNROLL
      for (int v = 0; v < Vectors; ++v) sums[r][v] = pack(0.0F);
    }
  }

  MAMBATILE_ALWAYS_INLINE void scale_row(int r, float factor) noexcept {
    pack const scale(factor);
    MAMBATILE_UNROLL
    for (int v = 0; v < Vectors; ++v) sums[r][v] = scale * sums[r][v];
  }

  // Rows from `First` on take part.
  template <int First = 0>
  MAMBATILE_ALWAYS_INLINE void add_outer(float const* left, float const* right) noexcept {
    pack column[static_cast<std::size_t>(Vectors)];
    MAMBATILE_UNROLL
    for (int v = 0; v < Vectors; ++v) column[v] = load(right + v * pack_width);
    MAMBATILE_UNROLL
    for (int r = First; r < Rows; ++r) {
      pack const factor(left[r]);
      MAMBATILE_UNROLL
      for (int v = 0; v < Vectors; ++v) sums[r][v] = fma(factor, column[v], sums[r][v]);
    }
  }

  MAMBATILE_ALWAYS_INLINE void add(tile_product const& product) noexcept {
    float const* left = product.left;
    float const* right = product.right;
    auto const left_stride = product.left_stride;
    auto const right_stride = product.right_stride;
    for (std::int64_t k = product.count; k > 0; --k) {
      add_outer(left, right);
      left += left_stride;
      right += right_stride;
    }
  }

  MAMBATILE_ALWAYS_INLINE void store_rows(float* to, std::int64_t stride) const noexcept {
    MAMBATILE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      MAMBATILE_UNROLL
      for (int v = 0; v < Vectors; ++v) store(to + v * pack_width, sums[r][v]);
      to += stride;
    }
  }
};

template <int Rows, int Vectors>
void run_product(product_tile const& tile) noexcept {
  tile_registers<Rows, Vectors> registers;
  registers.clear();
  // An address is one of a few pointers plus 0, 1 or 2 strides, which one instruction can form.
  constexpr int rows_of_pointer = 3;
  constexpr int pointers = (Rows + rows_of_pointer - 1) / rows_of_pointer;
  auto const stride = tile.left_stride;
  float const* left[static_cast<std::size_t>(pointers)];
  MAMBATILE_UNROLL
  for (int i = 0; i < pointers; ++i) left[i] = tile.left + i * rows_of_pointer * stride;
  float const* right = tile.right;
  for (std::int64_t k = tile.count; k > 0; --k) {
    pack column[static_cast<std::size_t>(Vectors)];
    MAMBATILE_UNROLL
    for (int v = 0; v < Vectors; ++v) column[v] = load(right + v * pack_width);
    MAMBATILE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      pack const factor(left[r / rows_of_pointer][(r % rows_of_pointer) * stride]);
      MAMBATILE_UNROLL
      for (int v = 0; v < Vectors; ++v) {
        registers.sums[r][v] = fma(factor, column[v], registers.sums[r][v]);
      }
    }
    MAMBATILE_UNROLL
    for (int i = 0; i < pointers; ++i) ++left[i];
    right += tile.right_stride;
  }
  registers.store_rows(tile.target, tile.target_stride);
}

template <int Rows, int Vectors>
void run_update(update_tile const& tile) noexcept {
  tile_registers<Rows, Vectors> registers;
  if (tile.from_zero) {
    registers.clear();
  } else {
    pack const scale(tile.first_scale);
    float const* source = tile.source;
    auto const stride = tile.source_stride;
    MAMBATILE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      MAMBATILE_UNROLL
      for (int v = 0; v < Vectors; ++v) {
        registers.sums[r][v] = scale * load(source + v * pack_width);
      }
      source += stride;
    }
  }
  registers.add(tile.product);
  float const last_scale = tile.last_scale;
  MAMBATILE_UNROLL
  for (int r = 0; r < Rows; ++r) registers.scale_row(r, last_scale);
  registers.store_rows(tile.target, tile.target_stride);
}

// The rows and columns of a tile's own tokens: row r takes part in r + 1 of them.
template <int Rows, int Vectors, int First = 0>
MAMBATILE_ALWAYS_INLINE inline void add_triangle(tile_registers<Rows, Vectors>& registers,
                                                 float const* left, std::int64_t left_stride,
                                                 float const* right,
                                                 std::int64_t right_stride) noexcept {
  registers.template add_outer<First>(left, right);
  if constexpr (First + 1 < Rows) {
    add_triangle<Rows, Vectors, First + 1>(registers, left + left_stride, left_stride,
                                           right + right_stride, right_stride);
  }
}

template <int Rows, int Vectors>
void run_output(output_tile const& tile) noexcept {
  tile_registers<Rows, Vectors> registers;
  registers.clear();
  registers.add(tile.state);
  float const* const row_scale = tile.row_scale;
  bool const scale_first = tile.scale_first;
  if (scale_first) {
    MAMBATILE_UNROLL
    for (int r = 0; r < Rows; ++r) registers.scale_row(r, row_scale[r]);
  }
  auto const& within = tile.within;
  registers.add(within);
  // Above the diagonal nothing is read: a later token, NaN or not, does not reach an earlier one.
  add_triangle(registers, within.left + within.count * within.left_stride, within.left_stride,
               within.right + within.count * within.right_stride, within.right_stride);
  if (!scale_first) {
    MAMBATILE_UNROLL
    for (int r = 0; r < Rows; ++r) registers.scale_row(r, row_scale[r]);
  }
  if (tile.skip != nullptr) {
    pack skip[static_cast<std::size_t>(Vectors)];
    MAMBATILE_UNROLL
    for (int v = 0; v < Vectors; ++v) skip[v] = load(tile.skip + v * pack_width);
    float const* x = tile.x;
    auto const stride = tile.x_stride;
    MAMBATILE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      MAMBATILE_UNROLL
      for (int v = 0; v < Vectors; ++v) {
        registers.sums[r][v] = fma(skip[v], load(x + v * pack_width), registers.sums[r][v]);
      }
      x += stride;
    }
  }
  registers.store_rows(tile.out, tile.out_stride);
}

template <int Tokens, int Vectors>
void run_recurrence(recurrence_tile const& tile) noexcept {
  tile_registers<Tokens, Vectors> out;
  tile_registers<Tokens, Vectors> x;
  pack decay[static_cast<std::size_t>(Tokens)];
  out.clear();
  MAMBATILE_UNROLL
  for (int t = 0; t < Tokens; ++t) {
    decay[t] = pack(tile.decay[t]);
    MAMBATILE_UNROLL
    for (int v = 0; v < Vectors; ++v)
      x.sums[t][v] = load(tile.x + t * tile.x_stride + v * pack_width);
  }
  float const* source = tile.source;
  float* target = tile.target;
  float const* b = tile.b;
  float const* c = tile.c;
  auto const source_stride = tile.source_stride;
  auto const target_stride = tile.target_stride;
  auto const stride = tile.bc_stride;
  for (std::int64_t n = tile.dstate; n > 0; --n) {
    pack state[static_cast<std::size_t>(Vectors)];
    MAMBATILE_UNROLL
    for (int v = 0; v < Vectors; ++v) state[v] = load(source + v * pack_width);
    MAMBATILE_UNROLL
    for (int t = 0; t < Tokens; ++t) {
      pack const b_t(b[t * stride]);
      pack const c_t(c[t * stride]);
      MAMBATILE_UNROLL
      for (int v = 0; v < Vectors; ++v) {
        state[v] = fma(decay[t], state[v], b_t * x.sums[t][v]);
        out.sums[t][v] = fma(c_t, state[v], out.sums[t][v]);
      }
    }
    MAMBATILE_UNROLL
    for (int v = 0; v < Vectors; ++v) store(target + v * pack_width, state[v]);
    source += source_stride;
    target += target_stride;
    ++b;
    ++c;
  }
  out.store_rows(tile.out, tile.out_stride);
}

// Entry (rows - 1) * tile_vectors + vectors - 1 of a table of all tile shapes.
template <class Tile, int Rows, class Pick>
constexpr auto make_table(Pick const& pick) {
  constexpr int columns = tuning.tile_vectors;
  return [&]<int... Index>(std::integer_sequence<int, Index...>) {
    return std::array<void (*)(Tile const&) noexcept, static_cast<std::size_t>(Rows * columns)>{
        pick(std::integral_constant<int, Index / columns + 1>{},
             std::integral_constant<int, Index % columns + 1>{})...};
  }
  (std::make_integer_sequence<int, Rows * columns>{});
}

constexpr auto product_tiles = make_table<product_tile, product_rows>(
    []<int R, int V>(std::integral_constant<int, R>, std::integral_constant<int, V>) {
      return &run_product<R, V>;
    });
constexpr auto updates = make_table<update_tile, tuning.tile_rows>(
    []<int R, int V>(std::integral_constant<int, R>, std::integral_constant<int, V>) {
      return &run_update<R, V>;
    });
constexpr auto outputs = make_table<output_tile, tuning.tile_rows>(
    []<int R, int V>(std::integral_constant<int, R>, std::integral_constant<int, V>) {
      return &run_output<R, V>;
    });
constexpr auto recurrences = make_table<recurrence_tile, recurrence_tokens>(
    []<int R, int V>(std::integral_constant<int, R>, std::integral_constant<int, V>) {
      return &run_recurrence<R, V>;
    });

[[nodiscard]] std::size_t entry(int rows, int vectors) noexcept {
  return static_cast<std::size_t>((rows - 1) * tuning.tile_vectors + vectors - 1);
}

}  // namespace

void run(product_tile const& tile, int rows, int vectors) noexcept {
  product_tiles[entry(rows, vectors)](tile);
}
void run(update_tile const& tile, int rows, int vectors) noexcept {
  updates[entry(rows, vectors)](tile);
}
void run(output_tile const& tile, int rows, int vectors) noexcept {
  outputs[entry(rows, vectors)](tile);
}
void run(recurrence_tile const& tile, int tokens, int vectors) noexcept {
  recurrences[entry(tokens, vectors)](tile);
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
