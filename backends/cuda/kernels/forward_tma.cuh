#pragma once

#include "tile_common.cuh"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// How a launch takes part in the sum over slabs of dstate.
enum class slab_part { whole, first, last };

/// What is left of y (channels, tokens): earlier slabs of dstate, the skip connection, the gate.
template <class Io, bool HasZ, slab_part Part, int Latency, class Y, class X, class Skip,
          class ZView, class PartialView>
__tile__ auto finish_output(Y y, X const& x, Skip const& skip, ZView const& z_view,
                            PartialView const& partial_view, segment_place const& place, int c,
                            int head, int row_tile, int partial_tile) {
  constexpr int Q = chunk_tokens;
  constexpr int P = tile_rows;
  if constexpr (Part == slab_part::last) {
    y = y + ct::reshape<shape<P, Q>>(partial_view.load(partial_tile, 0, 0));
  }
  auto result = ct::transpose(y) + x * skip;
  if constexpr (HasZ) {
    auto const z = load_tokens<Q, P, Latency>(z_view, place, c, head, row_tile);
    result = result * silu(ct::element_cast<float>(z));
  }
  return ct::element_cast<Io>(result);
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
template <class Io, class Operand, int N, bool Packed, bool HasZ, slab_part Part, int Warps,
          int Occupancy, int Latency>
[[using cutile: hint(0, occupancy = Occupancy,
                     num_worker_warps_per_cta = Warps)]] __tile_global__ void
forward_tma_kernel(Io const* __restrict__ x_, int x_row, int x_token, int x_head,
                   Io const* __restrict__ z_, int z_row, int z_token, int z_head,
                   Io const* __restrict__ B_, int B_row, int B_token, int B_group,
                   Io const* __restrict__ C_, int C_row, int C_token, int C_group,
                   Io* __restrict__ out_, int out_row, int out_token, int out_head,
                   float const* __restrict__ key_weight_, float const* __restrict__ query_weight_,
                   float const* __restrict__ remaining_, float const* __restrict__ delta_,
                   float const* __restrict__ chunk_decay_,
                   float const* __restrict__ chunk_log_decay_,
                   int const* __restrict__ strong_chunks_, float const* __restrict__ skip_,
                   float const* __restrict__ entries_, float const* __restrict__ entry_decay_,
                   float* __restrict__ partial_, float* __restrict__ final_, int final_row,
                   int final_head, int final_p, int has_final, int const* __restrict__ cu_seqlens,
                   std::int64_t cu_stride, int const* __restrict__ segment_sequence, int sequences,
                   int seqlen, int heads, int groups, int headdim, int dstate, int slots,
                   int row_chunks, int row_segments, int segment_chunks, int splits, int kept_last,
                   int initial, int passed, int entries, int state_columns, int strong_pitch,
                   int slab) {
  constexpr int Q = chunk_tokens;
  constexpr int P = tile_rows;
  int const row_tiles = (headdim + P - 1) / P;
  int const head_tiles = heads * row_tiles;
  int const segment_slot = ct::bid().x / head_tiles;
  int const head_tile = ct::bid().x - segment_slot * head_tiles;
  int const head = head_tile / row_tiles;
  int const row_tile = head_tile - head * row_tiles;
  int const group = head / (heads / groups);
  segment_place const place =
      locate_segment(segment_slot, Packed, cu_seqlens, cu_stride, segment_sequence, seqlen,
                     row_chunks, row_segments, segment_chunks, splits, kept_last, initial);
  if (place.length < 0) return;
  int const chunks = (place.length + Q - 1) / Q;
  int const first = place.segment * segment_chunks;
  int last = first + segment_chunks;
  if (last > chunks) last = chunks;

  int const rows = Packed ? 1 : sequences;
  auto const x_view = token_view<Q, P>(x_, rows, seqlen, heads, headdim, x_row, x_token, x_head);
  auto const z_view = token_view<Q, P>(z_, rows, seqlen, heads, headdim, z_row, z_token, z_head);
  auto const B_view = token_view<Q, N>(B_, rows, seqlen, groups, dstate, B_row, B_token, B_group);
  auto const C_view = token_view<Q, N>(C_, rows, seqlen, groups, dstate, C_row, C_token, C_group);
  auto const out_view =
      token_view<Q, P>(out_, rows, seqlen, heads, headdim, out_row, out_token, out_head);
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

  // Whether a chunk of the segment decays too much. Scalar loads: a condition out of tile
  // arithmetic does not compile here.
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
    auto const contribution =
        ct::reshape<shape<P, N>>(entry_view.load(entry * head_tiles + head_tile, 0, slab));
    state = state * entry_decay_[static_cast<std::int64_t>(entry) * heads + head] + contribution;
  }

  // Chunks [first, fast_last) in the fast form, the others exactly. A packed sequence's last,
  // partly filled chunk is followed by another sequence's rows, which only the exact form takes
  // out.
  int const whole = place.length / Q;
  int fast_last = Packed && whole < last ? whole : last;
  if (exact != 0 || fast_last < first) fast_last = first;
  for (auto c : ct::irange(first, fast_last)) {
    int const slot = place.slot + c;
    float const decay = chunk_decay[slot];
    auto const B = load_tokens<Q, N, Latency>(B_view, place, c, group, slab);
    auto const C = load_tokens<Q, N, Latency>(C_view, place, c, group, slab);
    auto const x = load_tokens<Q, P, Latency>(x_view, place, c, head, row_tile);
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
    int const partial_tile = slot * head_tiles + head_tile;
    if constexpr (Part == slab_part::first) {
      partial_view.store(ct::reshape<shape<1, P, Q>>(y), partial_tile, 0, 0);
    } else {
      auto const result = finish_output<Io, HasZ, Part, Latency>(
          y, x32, skip, z_view, partial_view, place, c, head, row_tile, partial_tile);
      store_tokens<Q, P>(out_view, result, place, c, head, row_tile);
    }
  }
  for (auto c : ct::irange(fast_last, last)) {
    int const slot = place.slot + c;
    float const decay = chunk_decay[slot];
    float const log_decay = chunk_log_decay[slot];
    auto B = load_tokens<Q, N, Latency>(B_view, place, c, group, slab);
    auto const C = load_tokens<Q, N, Latency>(C_view, place, c, group, slab);
    auto x = load_tokens<Q, P, Latency>(x_view, place, c, head, row_tile);
    if constexpr (Packed) {
      auto const inside = key < place.length - c * Q;
      B = keep_rows(inside, B);
      x = keep_rows(inside, x);
    }
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
    auto const BC = ct::mma(b, c_transposed, ct::zeros<QQ>());
    auto const weights = BC * exp2_flushed(difference) * ct::reshape<shape<Q, 1>>(delta);
    auto y = ct::mma(operand<Operand>(state), c_transposed, ct::zeros<PQ>()) *
             exp2_flushed(log_decay - remaining);
    y = ct::mma(ct::transpose(operand<Operand>(x)), operand<Operand>(weights), y);
    state = ct::mma(ct::transpose(xs), b, decayed);
    int const partial_tile = slot * head_tiles + head_tile;
    if constexpr (Part == slab_part::first) {
      partial_view.store(ct::reshape<shape<1, P, Q>>(y), partial_tile, 0, 0);
    } else {
      auto const result = finish_output<Io, HasZ, Part, Latency>(
          y, x32, skip, z_view, partial_view, place, c, head, row_tile, partial_tile);
      if constexpr (Packed) {
        store_tokens_partly<Q, P>(out_, out_token, out_head, headdim, result, place, c, head,
                                  row_tile);
      } else {
        store_tokens<Q, P>(out_view, result, place, c, head, row_tile);
      }
    }
  }

  if (has_final != 0 && place.segment == place.segments - 1) {
    auto const final_view =
        state_view<N>(final_, sequences, heads, headdim, dstate, final_row, final_head, final_p);
    final_view.store_masked(ct::reshape<shape<1, 1, P, N>>(state), place.sequence, head, row_tile,
                            slab);
  }
}

/// Launches one slab of the forward pass.
template <class Io, class Operand, int N, bool Packed, bool HasZ, slab_part Part, int Warps,
          int Occupancy, int Latency>
cudaError_t launch_forward_tma(scan_call const& call, int slab, cudaStream_t stream) {
  scan_sizes const& size = call.size;
  scan_prepared const& from = call.prepared;
  auto const blocks = static_cast<unsigned>(size.segments * size.heads * size.row_tiles);
  auto const in = [](token_tensor const& tensor) { return static_cast<Io const*>(tensor.data); };
  auto const n = [](std::int64_t stride) { return static_cast<int>(stride); };
  forward_tma_kernel<Io, Operand, N, Packed, HasZ, Part, Warps, Occupancy, Latency>
      <<<blocks, 1, 0, stream>>>(
          in(call.x), n(call.x.batch), n(call.x.token), n(call.x.head), in(call.z), n(call.z.batch),
          n(call.z.token), n(call.z.head), in(call.B), n(call.B.batch), n(call.B.token),
          n(call.B.head), in(call.C), n(call.C.batch), n(call.C.token), n(call.C.head),
          static_cast<Io*>(call.out.data), n(call.out.batch), n(call.out.token), n(call.out.head),
          from.key_weight, from.query_weight, from.remaining, from.delta, from.chunk_decay,
          from.chunk_log_decay, from.strong_chunks, from.skip, from.entries, from.entry_decay,
          from.partial, static_cast<float*>(call.final_target.data), n(call.final_target.row),
          n(call.final_target.head), n(call.final_target.p),
          call.final_target.data != nullptr ? 1 : 0, call.cu_seqlens, call.cu_stride,
          from.segment_sequence, size.sequences, size.seqlen, size.heads, size.groups, size.headdim,
          size.dstate, size.slots, size.row_chunks, size.row_segments, size.segment_chunks,
          size.splits, size.keep_last ? 1 : 0, size.has_initial ? 1 : 0, size.passed ? 1 : 0,
          size.entries, size.state_columns, (size.slots + 3) / 4, slab);
  return cudaGetLastError();
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
