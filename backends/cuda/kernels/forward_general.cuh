#pragma once

#include <type_traits>

#include "tile_common.cuh"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Runs of a chunk's tokens.
__tile__ inline auto load_runs(int const* run_of_token, int slot) {
  return ct::reshape<shape<1, chunk_tokens>>(
      ct::load(run_of_token + static_cast<std::int64_t>(slot) * chunk_tokens +
               ct::iota<tile<int, chunk_tokens>>()));
}

/// A run's rows of a chunk in f32, zeros elsewhere. Not Runs: all rows.
template <bool Runs, int Rows, int Columns, class View>
__tile__ auto load_run(View const& view, segment_place const& place, int c, int head,
                       int column_tile, int columns, int const* run_of_token, int slot, int run) {
  if constexpr (Runs) {
    auto const run_of_row = ct::reshape<shape<Rows, 1>>(load_runs(run_of_token, slot));
    return load_kept_tokens<Rows, Columns>(view, place, c, head, column_tile, columns,
                                           run_of_row == run && run_of_row >= 0);
  } else {
    return ct::element_cast<float>(
        load_tokens<Rows, Columns, 4>(view, place, c, head, column_tile));
  }
}

/// Rows of a run, each times its weight, which may be NaN in the others.
template <bool Runs, int Columns, class Tile, class Weight>
__tile__ auto weigh_run(Tile const& rows, Weight const& weight, int columns, int column_tile,
                        int const* run_of_token, int slot, int run) {
  auto const weighed = rows * weight;
  if constexpr (Runs) {
    auto const run_of_row = ct::reshape<shape<chunk_tokens, 1>>(load_runs(run_of_token, slot));
    return keep_elements<Columns>(run_of_row == run && run_of_row >= 0, weighed, columns,
                                  column_tile);
  } else {
    return weighed;
  }
}

/// The forward pass for every type and option: also sequences that change within a row (seq_idx)
/// and dstate in any number of slabs of N columns, one per launch. Exact decays throughout.
///
/// Runs: each chunk is cut into its runs, stretches of one sequence, which are computed one after
/// the other: rows that are not of the run are replaced by zeros before any product, so that
/// nothing crosses a border, NaN included. Without, all of a chunk is one sequence (rows that are
/// not packed), and rows beyond its end read as zeros.
///
/// Grid and arguments as forward_tma_kernel. partial_in: add what earlier slabs left; partial_out:
/// leave y for later slabs instead of writing `out`.
template <class Io, class Math, int N, bool Runs, int Warps>
[[using cutile: hint(0, occupancy = 1, num_worker_warps_per_cta = Warps)]] __tile_global__ void
forward_general_kernel(Io const* __restrict__ x_, int x_row, int x_token, int x_head,
                       Io const* __restrict__ z_, int z_row, int z_token, int z_head,
                       Io const* __restrict__ B_, int B_row, int B_token, int B_group,
                       Io const* __restrict__ C_, int C_row, int C_token, int C_group,
                       Io* __restrict__ out_, int out_row, int out_token, int out_head,
                       float const* __restrict__ key_weight_, float const* __restrict__ remaining_,
                       float const* __restrict__ remaining_low_, float const* __restrict__ delta_,
                       float const* __restrict__ run_log_decay_,
                       int const* __restrict__ run_of_token_, int const* __restrict__ chunk_runs,
                       int const* __restrict__ chunk_continues, float const* __restrict__ skip_,
                       float const* __restrict__ entries_, float const* __restrict__ entry_decay_,
                       float* __restrict__ partial_, float* __restrict__ final_, int final_row,
                       int final_head, int final_p, int has_final,
                       int const* __restrict__ cu_seqlens, std::int64_t cu_stride,
                       int const* __restrict__ segment_sequence, int packed, int sequences,
                       int seqlen, int heads, int groups, int headdim, int dstate, int slots,
                       int row_chunks, int row_segments, int segment_chunks, int splits,
                       int kept_last, int initial, int passed, int entries, int state_columns,
                       int slab, int has_z, int partial_in, int partial_out) {
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
      locate_segment(segment_slot, packed != 0, cu_seqlens, cu_stride, segment_sequence, seqlen,
                     row_chunks, row_segments, segment_chunks, splits, kept_last, initial);
  if (place.length < 0) return;
  int const chunks = (place.length + Q - 1) / Q;
  int const first = place.segment * segment_chunks;
  int last = first + segment_chunks;
  if (last > chunks) last = chunks;

  int const rows = packed != 0 ? 1 : sequences;
  auto const x_view = token_view<Q, P>(x_, rows, seqlen, heads, headdim, x_row, x_token, x_head);
  auto const z_view = token_view<Q, P>(z_, rows, seqlen, heads, headdim, z_row, z_token, z_head);
  auto const B_view = token_view<Q, N>(B_, rows, seqlen, groups, dstate, B_row, B_token, B_group);
  auto const C_view = token_view<Q, N>(C_, rows, seqlen, groups, dstate, C_row, C_token, C_group);
  auto const out_view =
      token_view<Q, P>(out_, rows, seqlen, heads, headdim, out_row, out_token, out_head);
  auto const key_weight_view = prepared_view(key_weight_, heads, slots);
  auto const remaining_view = prepared_view(remaining_, heads, slots);
  auto const remaining_low_view = prepared_view(remaining_low_, heads, slots);
  auto const delta_view = prepared_view(delta_, heads, slots);
  auto const entry_view = stored_view<N>(entries_, entries * head_tiles, state_columns);
  auto const partial_view = stored_view<Q>(partial_, slots * head_tiles, Q);
  float const* const run_log_decay =
      run_log_decay_ + static_cast<std::int64_t>(head) * slots * chunk_tokens;

  using QQ = tile<float, Q, Q>;
  using PQ = tile<float, P, Q>;
  using PN = tile<float, P, N>;
  auto const position = ct::iota<tile<int, Q>>();
  auto const query = ct::reshape<shape<1, Q>>(position);
  auto const key = ct::reshape<shape<Q, 1>>(position);
  auto const skip = ct::reshape<shape<1, P>>(
      ct::load(skip_ + (head * row_tiles + row_tile) * P + ct::iota<tile<int, P>>()));

  PN state = ct::zeros<PN>();
  int const before = initial + place.segment * splits;
  int const from = passed != 0 && before > 0 ? before - 1 : 0;
  for (auto e : ct::irange(from, before)) {
    int const entry = place.entry + e;
    auto const contribution =
        ct::reshape<shape<P, N>>(entry_view.load(entry * head_tiles + head_tile, 0, slab));
    state = state * entry_decay_[static_cast<std::int64_t>(entry) * heads + head] + contribution;
  }

  for (auto c : ct::irange(first, last)) {
    int const slot = place.slot + c;
    int const partial_tile = slot * head_tiles + head_tile;
    PQ y = ct::zeros<PQ>();
    int const runs = Runs ? chunk_runs[slot] : 1;
    for (int run = 0; run < runs; ++run) {
      float const log_decay = run_log_decay[static_cast<std::int64_t>(slot) * Q + run];
      auto const x =
          load_run<Runs, Q, P>(x_view, place, c, head, row_tile, headdim, run_of_token_, slot, run);
      auto const B =
          load_run<Runs, Q, N>(B_view, place, c, group, slab, dstate, run_of_token_, slot, run);
      auto const C = ct::transpose(
          load_run<Runs, Q, N>(C_view, place, c, group, slab, dstate, run_of_token_, slot, run));
      auto const remaining = remaining_view.load(head, slot);
      auto const delta = ct::reshape<shape<Q, 1>>(delta_view.load(head, slot));
      auto const key_weight = ct::reshape<shape<Q, 1>>(key_weight_view.load(head, slot));
      auto difference = ct::reshape<shape<Q, 1>>(remaining) - remaining;
      auto from_start = log_decay - remaining;
      if constexpr (std::is_same_v<Math, tf32x3>) {  // what rounding r to f32 lost
        auto const low = remaining_low_view.load(head, slot);
        difference = difference + (ct::reshape<shape<Q, 1>>(low) - low);
        from_start = from_start - low;
      }
      auto visible = query >= key;
      if constexpr (Runs) {
        bool const carried = run == 0 && chunk_continues[slot] != 0;
        state =
            ct::select(ct::broadcast(ct::full<tile<int, 1, 1>>(carried ? 1 : 0) > 0, shape<P, N>{}),
                       state, ct::zeros<PN>());
        auto const run_of_token = load_runs(run_of_token_, slot);
        visible = visible && ct::reshape<shape<Q, 1>>(run_of_token) == run && run_of_token == run;
      }
      auto const BC = multiply<Math>(B, C, ct::zeros<QQ>());
      auto const weights = ct::select(visible, BC * ct::exp2(difference) * delta, ct::zeros<QQ>());
      auto run_y = multiply<Math>(state, C, ct::zeros<PQ>()) * ct::exp2(from_start);
      run_y = multiply<Math>(ct::transpose(x), weights, run_y);
      if constexpr (Runs) {
        auto const run_of_query = load_runs(run_of_token_, slot);
        y = ct::select(ct::broadcast(run_of_query == run, shape<P, Q>{}), run_y, y);
      } else {
        y = run_y;
      }
      auto const weighed =
          weigh_run<Runs, P>(x, key_weight, headdim, row_tile, run_of_token_, slot, run);
      state = multiply<Math>(ct::transpose(weighed), B,
                             state * ct::exp2(ct::full<tile<float, 1, 1>>(log_decay)));
    }

    if (partial_in != 0) y = y + ct::reshape<shape<P, Q>>(partial_view.load(partial_tile, 0, 0));
    if (partial_out != 0) {
      partial_view.store(ct::reshape<shape<1, P, Q>>(y), partial_tile, 0, 0);
    } else {
      auto result =
          ct::transpose(y) +
          ct::element_cast<float>(load_tokens<Q, P, 4>(x_view, place, c, head, row_tile)) * skip;
      if (has_z != 0) {
        result =
            result *
            silu(ct::element_cast<float>(load_tokens<Q, P, 4>(z_view, place, c, head, row_tile)));
      }
      if constexpr (Runs) {
        auto const run_of_row = ct::reshape<shape<Q, 1>>(load_runs(run_of_token_, slot));
        result = keep_elements<P>(run_of_row >= 0, result, headdim, row_tile);
      }
      if (packed != 0 && (c + 1) * Q > place.length) {
        store_tokens_partly<Q, P>(out_, out_token, out_head, headdim, ct::element_cast<Io>(result),
                                  place, c, head, row_tile);
      } else {
        store_tokens<Q, P>(out_view, ct::element_cast<Io>(result), place, c, head, row_tile);
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

/// states_tma_kernel for anything. A segment's end state begins at its last change of sequence.
template <class Io, class Math, int N, bool Runs, int Warps>
[[using cutile: hint(0, occupancy = 1, num_worker_warps_per_cta = Warps)]] __tile_global__ void
states_general_kernel(Io const* __restrict__ x_, int x_row, int x_token, int x_head,
                      Io const* __restrict__ B_, int B_row, int B_token, int B_group,
                      float const* __restrict__ key_weight_,
                      float const* __restrict__ run_log_decay_,
                      int const* __restrict__ run_of_token_, int const* __restrict__ chunk_runs,
                      int const* __restrict__ chunk_continues, float* __restrict__ entries_,
                      float* __restrict__ entry_decay_, int const* __restrict__ cu_seqlens,
                      std::int64_t cu_stride, int const* __restrict__ segment_sequence, int packed,
                      int sequences, int seqlen, int heads, int groups, int headdim, int dstate,
                      int slots, int row_chunks, int row_segments, int segment_chunks, int splits,
                      int kept_last, int initial, int entries, int state_columns) {
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
      locate_segment(segment_slot, packed != 0, cu_seqlens, cu_stride, segment_sequence, seqlen,
                     row_chunks, row_segments, segment_chunks, splits, kept_last, initial);
  if (place.length < 0 || place.segment >= place.segments - 1 + kept_last) return;
  int const chunks = (place.length + Q - 1) / Q;
  int const split_chunks = segment_chunks / splits;
  int first = place.segment * segment_chunks + split * split_chunks;
  int last = first + split_chunks;
  if (last > chunks) last = chunks;
  if (first > last) first = last;
  // From which chunk on the end state is made, and whether what was before still reaches it.
  int begin = last;
  int reaches = 1;
  if constexpr (!Runs) begin = first;
  while (Runs && begin > first && reaches != 0) {
    begin = begin - 1;
    int const runs = chunk_runs[place.slot + begin];
    if (runs > 1 || (runs == 1 && chunk_continues[place.slot + begin] == 0)) reaches = 0;
  }

  int const rows = packed != 0 ? 1 : sequences;
  auto const x_view = token_view<Q, P>(x_, rows, seqlen, heads, headdim, x_row, x_token, x_head);
  auto const B_view = token_view<Q, N>(B_, rows, seqlen, groups, dstate, B_row, B_token, B_group);
  auto const key_weight_view = prepared_view(key_weight_, heads, slots);
  float const* const run_log_decay =
      run_log_decay_ + static_cast<std::int64_t>(head) * slots * chunk_tokens;

  tile<float, P, N> state = ct::zeros<tile<float, P, N>>();
  float later = 1.0F;
  for (auto i : ct::irange(begin, last)) {
    int const c = begin + last - 1 - i;
    int const slot = place.slot + c;
    int const run = Runs ? chunk_runs[slot] - 1 : 0;  // -1: a chunk of padding
    auto const key_weight = ct::reshape<shape<Q, 1>>(key_weight_view.load(head, slot));
    auto const x =
        load_run<Runs, Q, P>(x_view, place, c, head, row_tile, headdim, run_of_token_, slot, run);
    auto const B =
        load_run<Runs, Q, N>(B_view, place, c, group, slab, dstate, run_of_token_, slot, run);
    auto const weighed =
        weigh_run<Runs, P>(x, key_weight * later, headdim, row_tile, run_of_token_, slot, run);
    state = multiply<Math>(ct::transpose(weighed), B, state);
    if (run >= 0) {
      later = later * static_cast<float>(ct::exp2(ct::full<tile<float, 1>>(
                          run_log_decay[static_cast<std::int64_t>(slot) * Q + run])));
    }
  }

  int const entry = place.entry + initial + place.segment * splits + split;
  auto const entry_view = stored_view<N>(entries_, entries * head_tiles, state_columns);
  entry_view.store(ct::reshape<shape<1, P, N>>(state), entry * head_tiles + head_tile, 0, slab);
  if (slab == 0 && row_tile == 0) {
    ct::store(entry_decay_ + static_cast<std::int64_t>(entry) * heads + head,
              reaches != 0 ? later : 0.0F);
  }
}

/// Whether chunks may hold rows of several sequences, or of none.
inline bool has_runs(scan_call const& call) {
  return call.size.packed || call.seq_idx.data != nullptr;
}

template <class Io, class Math, int N, bool Runs, int Warps>
cudaError_t launch_forward_general(scan_call const& call, int slab, int slabs,
                                   cudaStream_t stream) {
  scan_sizes const& size = call.size;
  scan_prepared const& from = call.prepared;
  auto const blocks = static_cast<unsigned>(size.segments * size.heads * size.row_tiles);
  auto const in = [](token_tensor const& tensor) { return static_cast<Io const*>(tensor.data); };
  auto const n = [](std::int64_t stride) { return static_cast<int>(stride); };
  forward_general_kernel<Io, Math, N, Runs, Warps><<<blocks, 1, 0, stream>>>(
      in(call.x), n(call.x.batch), n(call.x.token), n(call.x.head), in(call.z), n(call.z.batch),
      n(call.z.token), n(call.z.head), in(call.B), n(call.B.batch), n(call.B.token), n(call.B.head),
      in(call.C), n(call.C.batch), n(call.C.token), n(call.C.head), static_cast<Io*>(call.out.data),
      n(call.out.batch), n(call.out.token), n(call.out.head), from.key_weight, from.remaining,
      from.remaining_low, from.delta, from.run_log_decay, from.run_of_token, from.chunk_runs,
      from.chunk_continues, from.skip, from.entries, from.entry_decay, from.partial,
      static_cast<float*>(call.final_target.data), n(call.final_target.row),
      n(call.final_target.head), n(call.final_target.p), call.final_target.data != nullptr ? 1 : 0,
      call.cu_seqlens, call.cu_stride, from.segment_sequence, size.packed ? 1 : 0, size.sequences,
      size.seqlen, size.heads, size.groups, size.headdim, size.dstate, size.slots, size.row_chunks,
      size.row_segments, size.segment_chunks, size.splits, size.keep_last ? 1 : 0,
      size.has_initial ? 1 : 0, size.passed ? 1 : 0, size.entries, size.state_columns, slab,
      call.z.data != nullptr ? 1 : 0, slab > 0 ? 1 : 0, slab + 1 < slabs ? 1 : 0);
  return cudaGetLastError();
}

template <class Io, class Math, int N, bool Runs, int Warps>
cudaError_t launch_states_general(scan_call const& call, cudaStream_t stream) {
  scan_sizes const& size = call.size;
  scan_prepared const& from = call.prepared;
  auto const blocks = static_cast<unsigned>(size.segments * size.splits * (size.state_columns / N) *
                                            size.heads * size.row_tiles);
  auto const n = [](std::int64_t stride) { return static_cast<int>(stride); };
  states_general_kernel<Io, Math, N, Runs, Warps><<<blocks, 1, 0, stream>>>(
      static_cast<Io const*>(call.x.data), n(call.x.batch), n(call.x.token), n(call.x.head),
      static_cast<Io const*>(call.B.data), n(call.B.batch), n(call.B.token), n(call.B.head),
      from.key_weight, from.run_log_decay, from.run_of_token, from.chunk_runs, from.chunk_continues,
      from.entries, from.entry_decay, call.cu_seqlens, call.cu_stride, from.segment_sequence,
      size.packed ? 1 : 0, size.sequences, size.seqlen, size.heads, size.groups, size.headdim,
      size.dstate, size.slots, size.row_chunks, size.row_segments, size.segment_chunks, size.splits,
      size.keep_last ? 1 : 0, size.has_initial ? 1 : 0, size.entries, size.state_columns);
  return cudaGetLastError();
}

template <class Io, class Math, int N, int Warps>
cudaError_t launch_forward_general(scan_call const& call, int slab, int slabs,
                                   cudaStream_t stream) {
  return has_runs(call)
             ? launch_forward_general<Io, Math, N, true, Warps>(call, slab, slabs, stream)
             : launch_forward_general<Io, Math, N, false, Warps>(call, slab, slabs, stream);
}

template <class Io, class Math, int N, int Warps>
cudaError_t launch_states_general(scan_call const& call, cudaStream_t stream) {
  return has_runs(call) ? launch_states_general<Io, Math, N, true, Warps>(call, stream)
                        : launch_states_general<Io, Math, N, false, Warps>(call, stream);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
