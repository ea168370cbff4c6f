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

template <int Vectors>
using pack_row = pack[static_cast<std::size_t>(Vectors)];
template <int Rows, int Vectors>
using tile_registers = pack[static_cast<std::size_t>(Rows)][static_cast<std::size_t>(Vectors)];

template <int Rows, int Vectors, class Function>
MAMBATILE_ALWAYS_INLINE inline void each(Function const& function) {
  unroll<Rows>([&](auto row) MAMBATILE_ALWAYS_INLINE {
    unroll<Vectors>([&](auto vector) MAMBATILE_ALWAYS_INLINE { function(row, vector); });
  });
}

template <int Rows, int Vectors>
MAMBATILE_ALWAYS_INLINE inline void accumulate(tile_registers<Rows, Vectors>& sums,
                                               tile_product const& product) {
  float const* left = product.left;
  float const* right = product.right;
  for (std::int64_t k = product.count; k > 0; --k) {
    pack_row<Vectors> column;
    unroll<Vectors>([&](auto v)
                        MAMBATILE_ALWAYS_INLINE { column[v] = load(right + v * pack_width); });
    unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE {
      pack const factor(left[r]);
      unroll<Vectors>(
          [&](auto v) MAMBATILE_ALWAYS_INLINE { sums[r][v] = fma(factor, column[v], sums[r][v]); });
    });
    left += product.left_stride;
    right += product.right_stride;
  }
}

template <int Rows, int Vectors>
void run_product(product_tile const& tile) noexcept {
  tile_registers<Rows, Vectors> sums;
  each<Rows, Vectors>([&](auto r, auto v) MAMBATILE_ALWAYS_INLINE { sums[r][v] = pack(0.0F); });
  // An address is one of a few pointers plus 0, 1 or 2 strides, which one instruction can form.
  constexpr int rows_of_pointer = 3;
  constexpr int pointers = (Rows + rows_of_pointer - 1) / rows_of_pointer;
  float const* left[static_cast<std::size_t>(pointers)];
  unroll<pointers>([&](auto i) MAMBATILE_ALWAYS_INLINE {
    left[i] = tile.left + i * rows_of_pointer * tile.left_stride;
  });
  float const* right = tile.right;
  for (std::int64_t k = tile.count; k > 0; --k) {
    pack_row<Vectors> column;
    unroll<Vectors>([&](auto v)
                        MAMBATILE_ALWAYS_INLINE { column[v] = load(right + v * pack_width); });
    unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE {
      pack const factor(left[r / rows_of_pointer][(r % rows_of_pointer) * tile.left_stride]);
      unroll<Vectors>(
          [&](auto v) MAMBATILE_ALWAYS_INLINE { sums[r][v] = fma(factor, column[v], sums[r][v]); });
    });
    unroll<pointers>([&](auto i) MAMBATILE_ALWAYS_INLINE { ++left[i]; });
    right += tile.right_stride;
  }
  each<Rows, Vectors>([&](auto r, auto v) MAMBATILE_ALWAYS_INLINE {
    store(tile.target + r * tile.target_stride + v * pack_width, sums[r][v]);
  });
}

template <int Rows, int Vectors>
void run_update(update_tile const& tile) noexcept {
  tile_registers<Rows, Vectors> sums;
  float* const target = tile.target;
  if (tile.from_zero) {
    each<Rows, Vectors>([&](auto r, auto v) MAMBATILE_ALWAYS_INLINE { sums[r][v] = pack(0.0F); });
  } else {
    pack const scale(tile.first_scale);
    each<Rows, Vectors>([&](auto r, auto v) MAMBATILE_ALWAYS_INLINE {
      sums[r][v] = scale * load(tile.source + r * tile.source_stride + v * pack_width);
    });
  }
  accumulate<Rows, Vectors>(sums, tile.product);
  pack const scale(tile.last_scale);
  each<Rows, Vectors>([&](auto r, auto v) MAMBATILE_ALWAYS_INLINE {
    store(target + r * tile.target_stride + v * pack_width, scale * sums[r][v]);
  });
}

template <int Rows, int Vectors>
void run_output(output_tile const& tile) noexcept {
  tile_registers<Rows, Vectors> sums;
  each<Rows, Vectors>([&](auto r, auto v) MAMBATILE_ALWAYS_INLINE { sums[r][v] = pack(0.0F); });
  accumulate<Rows, Vectors>(sums, tile.state);
  auto const scale_rows = [&]() MAMBATILE_ALWAYS_INLINE {
    unroll<Rows>([&](auto r) MAMBATILE_ALWAYS_INLINE {
      pack const scale(tile.row_scale[r]);
      unroll<Vectors>([&](auto v) MAMBATILE_ALWAYS_INLINE { sums[r][v] = scale * sums[r][v]; });
    });
  };
  if (tile.scale_first) scale_rows();
  accumulate<Rows, Vectors>(sums, tile.within);
  // Above the diagonal nothing is read: a later token, NaN or not, does not reach an earlier one.
  float const* const left = tile.within.left + tile.within.count * tile.within.left_stride;
  float const* const right = tile.within.right + tile.within.count * tile.within.right_stride;
  unroll<Rows>([&](auto k) MAMBATILE_ALWAYS_INLINE {
    pack_row<Vectors> column;
    unroll<Vectors>([&](auto v) MAMBATILE_ALWAYS_INLINE {
      column[v] = load(right + k * tile.within.right_stride + v * pack_width);
    });
    unroll<Rows - k>([&](auto below) MAMBATILE_ALWAYS_INLINE {
      constexpr int r = k + below;
      pack const factor(left[k * tile.within.left_stride + r]);
      unroll<Vectors>(
          [&](auto v) MAMBATILE_ALWAYS_INLINE { sums[r][v] = fma(factor, column[v], sums[r][v]); });
    });
  });
  if (!tile.scale_first) scale_rows();
  if (tile.skip != nullptr) {
    pack_row<Vectors> skip;
    unroll<Vectors>([&](auto v)
                        MAMBATILE_ALWAYS_INLINE { skip[v] = load(tile.skip + v * pack_width); });
    each<Rows, Vectors>([&](auto r, auto v) MAMBATILE_ALWAYS_INLINE {
      sums[r][v] = fma(skip[v], load(tile.x + r * tile.x_stride + v * pack_width), sums[r][v]);
    });
  }
  each<Rows, Vectors>([&](auto r, auto v) MAMBATILE_ALWAYS_INLINE {
    store(tile.out + r * tile.out_stride + v * pack_width, sums[r][v]);
  });
}

template <int Tokens, int Vectors>
void run_recurrence(recurrence_tile const& tile) noexcept {
  tile_registers<Tokens, Vectors> sums;
  tile_registers<Tokens, Vectors> x;
  pack_row<Tokens> decay;
  each<Tokens, Vectors>([&](auto t, auto v) MAMBATILE_ALWAYS_INLINE {
    sums[t][v] = pack(0.0F);
    x[t][v] = load(tile.x + t * tile.x_stride + v * pack_width);
  });
  unroll<Tokens>([&](auto t) MAMBATILE_ALWAYS_INLINE { decay[t] = pack(tile.decay[t]); });
  float const* source = tile.source;
  float* target = tile.target;
  for (std::int64_t n = 0; n < tile.dstate; ++n) {
    pack_row<Vectors> state;
    unroll<Vectors>([&](auto v)
                        MAMBATILE_ALWAYS_INLINE { state[v] = load(source + v * pack_width); });
    unroll<Tokens>([&](auto t) MAMBATILE_ALWAYS_INLINE {
      pack const b(tile.b[t * tile.bc_stride + n]);
      pack const c(tile.c[t * tile.bc_stride + n]);
      unroll<Vectors>([&](auto v) MAMBATILE_ALWAYS_INLINE {
        state[v] = fma(decay[t], state[v], b * x[t][v]);
        sums[t][v] = fma(c, state[v], sums[t][v]);
      });
    });
    unroll<Vectors>([&](auto v)
                        MAMBATILE_ALWAYS_INLINE { store(target + v * pack_width, state[v]); });
    source += tile.source_stride;
    target += tile.target_stride;
  }
  each<Tokens, Vectors>([&](auto t, auto v) MAMBATILE_ALWAYS_INLINE {
    store(tile.out + t * tile.out_stride + v * pack_width, sums[t][v]);
  });
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

constexpr auto product_tiles = make_table<product_tile, tuning.tile_rows>(
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
