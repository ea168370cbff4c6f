#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_tf32.h>
#include <cuda_tile.h>

#include <cstdint>
#include <type_traits>

#include "../scan_call.hpp"

// Pieces that the tile kernels of the scan share.

namespace mambatile {
inline namespace v0 {
namespace gpu {

namespace ct = ::cuda::tiles;
using namespace ct::literals;

template <int... Extents>
using shape = ct::shape<static_cast<std::uint32_t>(Extents)...>;
template <class Element, int... Extents>
using tile = ct::tile<Element, shape<Extents...>>;

/// Where a block's tokens are: one segment of one sequence.
struct segment_place {
  int sequence;
  int segment;   ///< within the sequence
  int row;       ///< batch row; 0 when packed
  int start;     ///< first token of the sequence in its row
  int length;    ///< tokens of the sequence; -1 = this segment slot is unused
  int slot;      ///< chunk slot of the sequence's first chunk
  int entry;     ///< first entry of the sequence
  int segments;  ///< segments of the sequence
};

/// Resolves a segment slot. A cu_seqlens that is not sorted or out of range leaves the slot unused.
__tile__ inline segment_place locate_segment(int segment_slot, bool packed, int const* cu_seqlens,
                                             std::int64_t cu_stride, int const* segment_sequence,
                                             int seqlen, int row_chunks, int row_segments,
                                             int segment_chunks, int splits, int kept_last,
                                             int initial) {
  // One flow of control: a return or a second copy of what follows costs registers in every kernel.
  int sequence = 0;
  int start = 0;
  int end = seqlen;
  if (packed) {
    sequence = segment_sequence[segment_slot];
    if (sequence >= 0) {
      start = cu_seqlens[sequence * cu_stride];
      end = cu_seqlens[(sequence + 1) * cu_stride];
    }
  } else {
    sequence = segment_slot / row_segments;
  }
  bool const sorted = sequence >= 0 && start >= 0 && start <= end && end <= seqlen;
  int const segment_tokens = segment_chunks * chunk_tokens;
  int const base = start / segment_tokens;
  int const chunks = (end - start + chunk_tokens - 1) / chunk_tokens;
  int const segments = chunks > 0 ? (chunks + segment_chunks - 1) / segment_chunks : 1;
  segment_place place;
  place.sequence = sequence;
  place.row = packed ? 0 : sequence;
  place.start = start;
  place.segments = segments;
  place.segment = packed ? segment_slot - base - sequence : segment_slot - sequence * row_segments;
  place.slot = packed ? start / chunk_tokens + sequence : sequence * row_chunks;
  place.entry = packed ? (base + kept_last * sequence) * splits + initial * sequence
                       : sequence * ((row_segments - 1 + kept_last) * splits + initial);
  place.length = sorted && place.segment < segments ? end - start : -1;
  return place;
}

/// How products are computed: operands are rounded to this type, or, for tf32x3, split into two
/// tf32 parts whose product is accurate to about 2^-21.
struct tf32x3 {};

template <class Math, class Tile>
__tile__ auto operand(Tile const& values) {
  return ct::element_cast<Math>(values);
}

/// accumulator + a b.
template <class Math, class Left, class Right, class Accumulator>
__tile__ auto multiply(Left const& a, Right const& b, Accumulator const& accumulator) {
  if constexpr (std::is_same_v<Math, tf32x3>) {
    auto const a_high = ct::element_cast<__nv_tf32>(a);
    auto const b_high = ct::element_cast<__nv_tf32>(b);
    auto const a_low = ct::element_cast<__nv_tf32>(a - ct::element_cast<float>(a_high));
    auto const b_low = ct::element_cast<__nv_tf32>(b - ct::element_cast<float>(b_high));
    return ct::mma(a_high, b_high, ct::mma(a_high, b_low, ct::mma(a_low, b_high, accumulator)));
  } else {
    return ct::mma(ct::element_cast<Math>(a), ct::element_cast<Math>(b), accumulator);
  }
}

/// Tiles (Rows, Columns) of a tensor (row, token, head, inner) with stride 1 inside, from any token
/// on; data 16-byte aligned, strides multiples of 16 bytes, so that loads and stores become TMA.
/// Elements outside the tensor read as zero and are never written. Made of kernel arguments alone:
/// descriptors that depend on the block would be made on the device, in memory that drivers of the
/// 580 series do not provide (out-of-bounds writes seen).
template <int Rows, int Columns, class Element>
__tile__ auto token_view(Element* base, int rows, int tokens, int heads, int columns,
                         int row_stride, int token_stride, int head_stride) {
  constexpr int unit = 16 / static_cast<int>(sizeof(Element));
  ct::layout_strided_mapping mapping{
      ct::extents<int, ct::dynamic_extent, ct::dynamic_extent, ct::dynamic_extent,
                  ct::dynamic_extent>{
          ct::assume_bounded_below<0>(rows), ct::assume_bounded_below<0>(tokens),
          ct::assume_bounded_below<0>(heads), ct::assume_bounded_below<0>(columns)},
      ct::extents<int, ct::dynamic_extent, ct::dynamic_extent, ct::dynamic_extent, 1>{
          ct::assume_divisible<unit>(ct::assume_bounded_below<0>(row_stride)),
          ct::assume_divisible<unit>(ct::assume_bounded_below<0>(token_stride)),
          ct::assume_divisible<unit>(ct::assume_bounded_below<0>(head_stride))}};
  return ct::strided_view{ct::tensor_span{ct::assume_aligned<16>(base), mapping},
                          shape<1, Rows, 1, Columns>{}, ct::strides<int, 1, 1, 1, Columns>{}};
}

/// Chunk c of the block's sequence. Packed sequences: rows beyond the sequence's end are whatever
/// lies there.
template <int Rows, int Columns, int Latency, class View>
__tile__ auto load_tokens(View const& view, segment_place const& place, int c, int head,
                          int column_tile) {
  typename View::view_tile_type loaded;
  [[using cutile: hint(0, latency = Latency)]] loaded =
      view.load_masked(place.row, place.start + c * Rows, head, column_tile);
  return ct::reshape<shape<Rows, Columns>>(loaded);
}

template <int Rows, int Columns, class View, class Tile>
__tile__ void store_tokens(View const& view, Tile const& values, segment_place const& place, int c,
                           int head, int column_tile) {
  view.store_masked(ct::reshape<shape<1, Rows, 1, Columns>>(values), place.row,
                    place.start + c * Rows, head, column_tile);
}

/// The same for a chunk that ends before its 64th row: element by element.
template <int Rows, int Columns, class Element, class Tile>
__tile__ void store_tokens_partly(Element* base, std::int64_t token_stride,
                                  std::int64_t head_stride, int columns, Tile const& values,
                                  segment_place const& place, int c, int head, int column_tile) {
  auto const row = ct::reshape<shape<Rows, 1>>(ct::iota<tile<int, Rows>>());
  auto const column =
      ct::reshape<shape<1, Columns>>(ct::iota<tile<int, Columns>>()) + column_tile * Columns;
  Element* const first = base + (place.start + static_cast<std::int64_t>(c) * Rows) * token_stride +
                         head * head_stride;
  auto const inside = row < place.length - c * Rows && column < columns;
  ct::store_masked(first + (row * static_cast<int>(token_stride) + column), values, inside);
}

/// Rows where the condition (rows, 1) holds; zeros elsewhere, whatever was there.
template <class Condition, class Tile>
__tile__ auto keep_rows(Condition const& condition, Tile const& values) {
  return ct::select(ct::broadcast(condition, typename Tile::shape_type{}), values,
                    ct::zeros<Tile>());
}

/// The same for columns of a tensor that has `columns` of them, in its column_tile-th tile. nvcc
/// 13.4.92 loses a condition on rows that was loaded from memory where it is broadcast as it is:
/// all rows come through, NaN included. One that also differs by column is kept.
template <int Columns, class Condition, class Tile>
__tile__ auto keep_elements(Condition const& condition, Tile const& values, int columns,
                            int column_tile) {
  auto const column =
      ct::reshape<shape<1, Columns>>(ct::iota<tile<int, Columns>>()) + column_tile * Columns;
  return ct::select(condition && column < columns, values, ct::zeros<Tile>());
}

/// Rows of a chunk where the condition (Rows, 1) holds, in f32; zeros elsewhere.
template <int Rows, int Columns, class View, class Condition>
__tile__ auto load_kept_tokens(View const& view, segment_place const& place, int c, int head,
                               int column_tile, int columns, Condition const& condition) {
  auto const loaded = load_tokens<Rows, Columns, 4>(view, place, c, head, column_tile);
  return ct::element_cast<float>(keep_elements<Columns>(condition, loaded, columns, column_tile));
}

/// Tiles (64, Columns) of states (row, head, p, n) in f32 with stride 1 inside, aligned as above.
template <int Columns>
__tile__ auto state_view(float* base, int rows, int heads, int headdim, int dstate, int row_stride,
                         int head_stride, int p_stride) {
  ct::layout_strided_mapping mapping{
      ct::extents<int, ct::dynamic_extent, ct::dynamic_extent, ct::dynamic_extent,
                  ct::dynamic_extent>{
          ct::assume_bounded_below<0>(rows), ct::assume_bounded_below<0>(heads),
          ct::assume_bounded_below<0>(headdim), ct::assume_bounded_below<0>(dstate)},
      ct::extents<int, ct::dynamic_extent, ct::dynamic_extent, ct::dynamic_extent, 1>{
          ct::assume_divisible<4>(ct::assume_bounded_below<0>(row_stride)),
          ct::assume_divisible<4>(ct::assume_bounded_below<0>(head_stride)),
          ct::assume_divisible<4>(ct::assume_bounded_below<0>(p_stride))}};
  return ct::partition_view{ct::tensor_span{ct::assume_aligned<16>(base), mapping},
                            shape<1, 1, tile_rows, Columns>{}};
}

/// Prepared numbers, (heads, slots 64).
template <class Element>
__tile__ auto prepared_view(Element* base, int heads, int slots) {
  auto const data = ct::assume_aligned<16>(base);
  ct::extents<int, ct::dynamic_extent, ct::dynamic_extent> extents{
      ct::assume_bounded_below<0>(heads),
      ct::assume_divisible<chunk_tokens>(ct::assume_bounded_below<0>(slots * chunk_tokens))};
  return ct::partition_view{ct::tensor_span{data, extents}, shape<1, chunk_tokens>{}};
}

/// Contiguous matrices of workspace, (count, 64, columns), in tiles of (1, 64, Columns); columns is
/// a multiple of 64.
template <int Columns, class Element>
__tile__ auto stored_view(Element* base, int count, int columns) {
  ct::extents<int, ct::dynamic_extent, tile_rows, ct::dynamic_extent> extents{
      ct::assume_bounded_below<0>(count),
      ct::assume_divisible<64>(ct::assume_bounded_below<0>(columns))};
  return ct::partition_view{ct::tensor_span{ct::assume_aligned<16>(base), extents},
                            shape<1, tile_rows, Columns>{}};
}

template <class Tile>
__tile__ auto exp2_flushed(Tile const& exponent) {
  return ct::exp2(exponent, ct::round_subnormals_to_zero_t{});
}

template <class Tile>
__tile__ auto silu(Tile const& x) {
  auto const e = exp2_flushed(x * -1.4426950408889634F);
  return ct::div(x, e + 1.0F, ct::round_approximate_t{}, ct::round_subnormals_to_zero_t{});
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
