#pragma once

#include "tile_common.cuh"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// What a (split of a) segment adds to the state at its end, and its decay:
///     sum_j 2^{r_j + later chunks' decay} delta_j x_j B_j^T
/// walked from the last chunk to the first, so that the sum is never rescaled. Last segments of
/// sequences are left out unless kept.
///
/// Grid: head tiles fastest, then slabs of N columns, then splits, then segment slots.
/// Preconditions as in forward_tma_kernel.
template <class Io, class Operand, int N, bool Packed, int Warps, int Occupancy, int Latency>
[[using cutile: hint(0, occupancy = Occupancy,
                     num_worker_warps_per_cta = Warps)]] __tile_global__ void
states_tma_kernel(Io const* __restrict__ x_, int x_row, int x_token, int x_head,
                  Io const* __restrict__ B_, int B_row, int B_token, int B_group,
                  float const* __restrict__ key_weight_, float const* __restrict__ chunk_decay_,
                  float* __restrict__ entries_, float* __restrict__ entry_decay_,
                  int const* __restrict__ cu_seqlens, std::int64_t cu_stride,
                  int const* __restrict__ segment_sequence, int sequences, int seqlen, int heads,
                  int groups, int headdim, int dstate, int slots, int row_chunks, int row_segments,
                  int segment_chunks, int splits, int kept_last, int initial, int entries,
                  int state_columns) {
  constexpr int Q = chunk_tokens;
  constexpr int P = tile_rows;
  int const slabs = state_columns / N;
  int const row_tiles = (headdim + P - 1) / P;
  int const head_tiles = heads * row_tiles;
  int block = ct::bid().x;
  int const head_tile = block % head_tiles;
  block = block / head_tiles;
  int const slab = block % slabs;
  block = block / slabs;
  int const split = block % splits;
  int const segment_slot = block / splits;
  int const head = head_tile / row_tiles;
  int const row_tile = head_tile - head * row_tiles;
  int const group = head / (heads / groups);
  segment_place const place =
      locate_segment(segment_slot, Packed, cu_seqlens, cu_stride, segment_sequence, seqlen,
                     row_chunks, row_segments, segment_chunks, splits, kept_last, initial);
  if (place.length < 0 || place.segment >= place.segments - 1 + kept_last) return;
  int const chunks = (place.length + Q - 1) / Q;
  int const split_chunks = segment_chunks / splits;
  int first = place.segment * segment_chunks + split * split_chunks;
  int last = first + split_chunks;
  if (last > chunks) last = chunks;
  if (first > last) first = last;

  int const rows = Packed ? 1 : sequences;
  auto const x_view = token_view<Q, P>(x_, rows, seqlen, heads, headdim, x_row, x_token, x_head);
  auto const B_view = token_view<Q, N>(B_, rows, seqlen, groups, dstate, B_row, B_token, B_group);
  auto const key_weight_view = prepared_view(key_weight_, heads, slots);
  float const* const chunk_decay = chunk_decay_ + static_cast<std::int64_t>(head) * slots;

  tile<float, P, N> state = ct::zeros<tile<float, P, N>>();
  float later = 1.0F;
  for (auto i : ct::irange(first, last)) {
    int const c = first + last - 1 - i;
    int const slot = place.slot + c;
    float const decay = chunk_decay[slot];
    auto const key_weight = key_weight_view.load(head, slot);
    auto x = load_tokens<Q, P, Latency>(x_view, place, c, head, row_tile);
    auto B = load_tokens<Q, N, Latency>(B_view, place, c, group, slab);
    if constexpr (Packed) {  // rows of the next sequence
      auto const inside = ct::reshape<shape<Q, 1>>(ct::iota<tile<int, Q>>()) < place.length - c * Q;
      B = keep_rows(inside, B);
      x = keep_rows(inside, x);
    }
    auto const xs = operand<Operand>(ct::element_cast<float>(x) *
                                     (ct::reshape<shape<Q, 1>>(key_weight) * later));
    state = ct::mma(ct::transpose(xs), operand<Operand>(B), state);
    later = later * decay;
  }

  int const entry = place.entry + initial + place.segment * splits + split;
  auto const entry_view = stored_view<N>(entries_, entries * head_tiles, state_columns);
  [[using cutile: hint(0, allow_tma = false)]] entry_view.store(
      ct::reshape<shape<1, P, N>>(state), entry * head_tiles + head_tile, 0, slab);
  if (slab == 0 && row_tile == 0) {
    ct::store(entry_decay_ + static_cast<std::int64_t>(entry) * heads + head, later);
  }
}

template <class Io, class Operand, int N, bool Packed, int Warps, int Occupancy, int Latency>
cudaError_t launch_states_tma(scan_call const& call, cudaStream_t stream) {
  scan_sizes const& size = call.size;
  scan_prepared const& from = call.prepared;
  auto const blocks = static_cast<unsigned>(size.segments * size.splits * (size.state_columns / N) *
                                            size.heads * size.row_tiles);
  auto const n = [](std::int64_t stride) { return static_cast<int>(stride); };
  states_tma_kernel<Io, Operand, N, Packed, Warps, Occupancy, Latency><<<blocks, 1, 0, stream>>>(
      static_cast<Io const*>(call.x.data), n(call.x.batch), n(call.x.token), n(call.x.head),
      static_cast<Io const*>(call.B.data), n(call.B.batch), n(call.B.token), n(call.B.head),
      from.key_weight, from.chunk_decay, from.entries, from.entry_decay, call.cu_seqlens,
      call.cu_stride, from.segment_sequence, size.sequences, size.seqlen, size.heads, size.groups,
      size.headdim, size.dstate, size.slots, size.row_chunks, size.row_segments,
      size.segment_chunks, size.splits, size.keep_last ? 1 : 0, size.has_initial ? 1 : 0,
      size.entries, size.state_columns);
  return cudaGetLastError();
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
