#pragma once

#include "tile_common.cuh"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// How a launch takes part in the sum over slabs of dstate.
enum class slab_part { whole, first, last };

template <class View>
using view_tile = typename std::remove_cvref_t<View>::view_tile_type;

// Declares NAME and loads it with a prefetch distance.
#define MAMBATILE_LOAD(NAME, VIEW, ...)       \
  view_tile<decltype(VIEW)> NAME;             \
  [[using cutile: hint(0, latency = Latency)]] NAME = VIEW.load_masked(__VA_ARGS__)

/// Adds what earlier slabs of dstate left, the skip connection and the gate; y is (channels, tokens).
template <bool HasZ, slab_part Part, int Latency, class Y, class X, class Skip, class ZView,
          class PartialView, class OutView>
__tile__ void store_output(Y y, X const& x, Skip const& skip, ZView const& z_view,
                           PartialView const& partial_view, OutView const& out_view, int c,
                           int row_tile, int partial_tile) {
  constexpr int Q = chunk_tokens;
  constexpr int P = tile_rows;
  using Io = ct::tile_element_t<view_tile<OutView>>;
  if constexpr (Part == slab_part::first) {
    partial_view.store(ct::reshape<shape<1, P, Q>>(y), partial_tile, 0, 0);
  } else {
    if constexpr (Part == slab_part::last) {
      y = y + ct::reshape<shape<P, Q>>(partial_view.load(partial_tile, 0, 0));
    }
    auto result = ct::transpose(y) + x * skip;
    if constexpr (HasZ) {
      MAMBATILE_LOAD(z, z_view, c, row_tile);
      result = result * silu(ct::element_cast<float>(z));
    }
    out_view.store_masked(ct::element_cast<Io>(result), c, row_tile);
  }
}

/// The forward pass over one segment per block: state in registers, chunk after chunk.
///
/// With r_j the log2 decay from token j to the chunk's end and e that of the whole chunk:
///     xs_j = 2^{r_j} delta_j x_j             state' = e state + sum_j xs_j B_j^T
///     y_i  = 2^{-r_i} ((e state) C_i + sum_{j <= i} (B_j C_i) xs_j)
/// so no exponential and no head-dependent matrix is needed in the loop. 2^{-r} must not leave f32:
/// a segment that holds a chunk with too strong a decay takes the exact form,
///     y_i = 2^{e + -r_i} state C_i + sum_{j <= i} (B_j C_i) 2^{r_j - r_i} delta_j x_j.
///
/// Grid: head tiles fastest, then segment slots. x, z, B, C, out: aligned to 16 bytes with strides
/// that are multiples of 16 bytes. Operand: what products multiply.
template <class Io, class Operand, int N, bool HasZ, slab_part Part, int Warps, int Occupancy, int Latency>
[[using cutile: hint(0, occupancy = Occupancy, num_worker_warps_per_cta = Warps)]]
__tile_global__ void forward_tma_kernel(
    Io const* __restrict__ x_, std::int64_t x_batch, std::int64_t x_token, std::int64_t x_head,
    Io const* __restrict__ z_, std::int64_t z_batch, std::int64_t z_token, std::int64_t z_head,
    Io const* __restrict__ B_, std::int64_t B_batch, std::int64_t B_token, std::int64_t B_group,
    Io const* __restrict__ C_, std::int64_t C_batch, std::int64_t C_token, std::int64_t C_group,
    Io* __restrict__ out_, std::int64_t out_batch, std::int64_t out_token, std::int64_t out_head,
    float const* __restrict__ key_weight_, float const* __restrict__ query_weight_,
    float const* __restrict__ remaining_, float const* __restrict__ delta_,
    float const* __restrict__ chunk_decay_, float const* __restrict__ chunk_log_decay_,
    int const* __restrict__ strong_chunks_,
    float const* __restrict__ skip_, float const* __restrict__ entries_,
    float const* __restrict__ entry_decay_, float* __restrict__ partial_,
    float* __restrict__ final_, std::int64_t final_row, std::int64_t final_head,
    std::int64_t final_p, int const* __restrict__ cu_seqlens, std::int64_t cu_stride,
    int const* __restrict__ segment_sequence, int packed, int seqlen, int heads, int groups,
    int headdim, int dstate, int slots, int row_chunks, int row_segments, int segment_chunks,
    int splits, int kept_last, int initial, int passed, int entries, int state_columns, int strong_pitch, int slab_column) {
  constexpr int Q = chunk_tokens;
  constexpr int P = tile_rows;
  int const row_tiles = (headdim + P - 1) / P;
  int const head_tiles = heads * row_tiles;
  int const segment_slot = ct::bid().x / head_tiles;
  int const head_tile = ct::bid().x - segment_slot * head_tiles;
  int const head = head_tile / row_tiles;
  int const row_tile = head_tile - head * row_tiles;
  int const group = head / (heads / groups);
  segment_place const place = locate_segment(
      segment_slot, packed != 0, cu_seqlens, cu_stride, segment_sequence, seqlen, row_chunks,
      row_segments, segment_chunks, splits, kept_last, initial);
  if (place.length < 0) return;
  int const chunks = (place.length + Q - 1) / Q;
  int const first = place.segment * segment_chunks;
  int last = first + segment_chunks;
  if (last > chunks) last = chunks;

  std::int64_t const batch = packed != 0 ? 0 : place.sequence;
  std::int64_t const token = place.start;
  auto const x_view = matrix_view<Q, P>(
      x_ + batch * x_batch + token * x_token + head * x_head, place.length, headdim, x_token);
  auto const B_view = matrix_view<Q, N>(
      B_ + batch * B_batch + token * B_token + group * B_group + slab_column, place.length,
      dstate - slab_column, B_token);
  auto const C_view = matrix_view<Q, N>(
      C_ + batch * C_batch + token * C_token + group * C_group + slab_column, place.length,
      dstate - slab_column, C_token);
  auto const out_view = matrix_view<Q, P>(
      out_ + batch * out_batch + token * out_token + head * out_head, place.length, headdim,
      out_token);
  auto const z_view = matrix_view<Q, P>(
      z_ + batch * z_batch + token * z_token + head * z_head, place.length, headdim, z_token);
  auto const key_weight_view = prepared_view(key_weight_, heads, slots);
  auto const query_weight_view = prepared_view(query_weight_, heads, slots);
  auto const remaining_view = prepared_view(remaining_, heads, slots);
  auto const delta_view = prepared_view(delta_, heads, slots);
  auto const entry_view = stored_view<N>(entries_, entries * head_tiles, state_columns);
  auto const partial_view = stored_view<Q>(partial_, slots * head_tiles, Q);
  float const* const chunk_decay = chunk_decay_ + static_cast<std::int64_t>(head) * slots;
  float const* const chunk_log_decay = chunk_log_decay_ + static_cast<std::int64_t>(head) * slots;

  using QQ = tile<float, Q, Q>;
  using PQ = tile<float, P, Q>;
  using PN = tile<float, P, N>;
  auto const position = ct::iota<tile<int, Q>>();
  auto const query = ct::reshape<shape<1, Q>>(position);
  auto const key = ct::reshape<shape<Q, 1>>(position);
  auto const skip = ct::reshape<shape<1, P>>(
      ct::load(skip_ + (head * row_tiles + row_tile) * P + ct::iota<tile<int, P>>()));

  // Whether a chunk of the segment decays too much. Scalar loads: a condition out of tile arithmetic
  // does not compile here.
  int const* const strong = strong_chunks_ + static_cast<std::int64_t>(head) * strong_pitch;
  int const first_slot = place.slot + first;
  int const last_slot = place.slot + last - 1;
  int exact = 0;
  for (int word = first_slot / 4; word <= last_slot / 4; ++word) {
    int bits = strong[word];
    if (word == first_slot / 4) bits = bits & (15 << (first_slot & 3));
    if (word == last_slot / 4) bits = bits & (15 >> (3 - (last_slot & 3)));
    exact = exact | bits;
  }

  PN state = ct::zeros<PN>();
  int const before = initial + place.segment * splits;
  int const from = passed != 0 && before > 0 ? before - 1 : 0;
  for (auto e : ct::irange(from, before)) {
    int const entry = place.entry + e;
    auto const contribution = ct::reshape<shape<P, N>>(
        entry_view.load(entry * head_tiles + head_tile, 0, slab_column / N));
    state = state * entry_decay_[static_cast<std::int64_t>(entry) * heads + head] + contribution;
  }

  if (exact == 0) {
    for (auto c : ct::irange(first, last)) {
      int const slot = place.slot + c;
      float const decay = chunk_decay[slot];
      MAMBATILE_LOAD(B, B_view, c, 0);
      MAMBATILE_LOAD(C, C_view, c, 0);
      MAMBATILE_LOAD(x, x_view, c, row_tile);
      auto const key_weight = key_weight_view.load(head, slot);
      auto const query_weight = query_weight_view.load(head, slot);
      auto const b = operand<Operand>(B);
      auto const c_transposed = ct::transpose(operand<Operand>(C));
      auto const x32 = ct::element_cast<float>(x);
      auto const xs = operand<Operand>(x32 * ct::reshape<shape<Q, 1>>(key_weight));
      auto const decayed = state * decay;
      // Independent products back to back, in this order: others measured 10-25 % slower.
      auto y = ct::mma(operand<Operand>(decayed), c_transposed, ct::zeros<PQ>());
      auto const BC = ct::mma(b, c_transposed, ct::zeros<QQ>());
      state = ct::mma(ct::transpose(xs), b, decayed);
      auto const masked = ct::select(query >= key, BC, ct::zeros<QQ>());
      y = ct::mma(ct::transpose(xs), operand<Operand>(masked), y) * query_weight;
      store_output<HasZ, Part, Latency>(y, x32, skip, z_view, partial_view, out_view, c, row_tile,
                                        slot * head_tiles + head_tile);
    }
  } else {
    for (auto c : ct::irange(first, last)) {
      int const slot = place.slot + c;
      float const decay = chunk_decay[slot];
      float const log_decay = chunk_log_decay[slot];
      MAMBATILE_LOAD(B, B_view, c, 0);
      MAMBATILE_LOAD(C, C_view, c, 0);
      MAMBATILE_LOAD(x, x_view, c, row_tile);
      auto const key_weight = key_weight_view.load(head, slot);
      auto const remaining = remaining_view.load(head, slot);
      auto const delta = delta_view.load(head, slot);
      auto const b = operand<Operand>(B);
      auto const c_transposed = ct::transpose(operand<Operand>(C));
      auto const x32 = ct::element_cast<float>(x);
      auto const xs = operand<Operand>(x32 * ct::reshape<shape<Q, 1>>(key_weight));
      auto const decayed = state * decay;
      auto const difference = ct::select(
          query >= key, ct::reshape<shape<Q, 1>>(remaining) - remaining, ct::full<QQ>(-1.0e4F));
      auto const from_start = log_decay - remaining;
      auto const BC = ct::mma(b, c_transposed, ct::zeros<QQ>());
      auto const weights =
          BC * exp2_flushed(difference) * ct::reshape<shape<Q, 1>>(delta);
      auto y = ct::mma(operand<Operand>(state), c_transposed, ct::zeros<PQ>()) *
               exp2_flushed(from_start);
      y = ct::mma(ct::transpose(operand<Operand>(x)), operand<Operand>(weights), y);
      state = ct::mma(ct::transpose(xs), b, decayed);
      store_output<HasZ, Part, Latency>(y, x32, skip, z_view, partial_view, out_view, c, row_tile,
                                        slot * head_tiles + head_tile);
    }
  }

  if (final_ != nullptr && place.segment == place.segments - 1) {
    auto const final_view = matrix_view<P, N>(
        final_ + place.sequence * final_row + head * final_head + slab_column, headdim,
        dstate - slab_column, final_p);
    final_view.store_masked(state, row_tile, 0);
  }
}

/// Launches one slab of the forward pass.
template <class Io, class Operand, int N, bool HasZ, slab_part Part, int Warps, int Occupancy,
          int Latency>
cudaError_t launch_forward_tma(scan_call const& call, int slab, cudaStream_t stream) {
  scan_sizes const& size = call.size;
  scan_prepared const& from = call.prepared;
  auto const blocks = static_cast<unsigned>(size.segments * size.heads * size.row_tiles);
  auto const in = [](token_tensor const& tensor) { return static_cast<Io const*>(tensor.data); };
  forward_tma_kernel<Io, Operand, N, HasZ, Part, Warps, Occupancy, Latency>
      <<<blocks, 1, 0, stream>>>(
          in(call.x), call.x.batch, call.x.token, call.x.head, in(call.z), call.z.batch,
          call.z.token, call.z.head, in(call.B), call.B.batch, call.B.token, call.B.head, in(call.C),
          call.C.batch, call.C.token, call.C.head, static_cast<Io*>(call.out.data), call.out.batch,
          call.out.token, call.out.head, from.key_weight, from.query_weight, from.remaining,
          from.delta, from.chunk_decay, from.chunk_log_decay, from.strong_chunks, from.skip,
          from.entries, from.entry_decay, from.partial,
          static_cast<float*>(call.final_target.data), call.final_target.row,
          call.final_target.head, call.final_target.p, call.cu_seqlens, call.cu_stride,
          from.segment_sequence, size.packed ? 1 : 0, size.seqlen, size.heads, size.groups,
          size.headdim, size.dstate, size.slots, size.row_chunks, size.row_segments,
          size.segment_chunks, size.splits, size.keep_last ? 1 : 0, size.has_initial ? 1 : 0,
          size.passed ? 1 : 0, size.entries, size.state_columns, (size.slots + 3) / 4, slab * N);
  return cudaGetLastError();
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
