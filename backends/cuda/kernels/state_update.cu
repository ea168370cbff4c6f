#include "state_update.hpp"

#include <cstdint>
#include <type_traits>

#include "../status_bits.hpp"
#include "../tuning_state_update.hpp"
#include "state_elements.cuh"

// Decode: a warp takes some channels of one head of one batch row. Its lanes lie along dstate, four
// elements each, in one or, for dstate up to 64, two rows of the state at once; above 512 the warps
// of a block lie side by side. The state is read before the first token, stays in registers over
// the tokens, and is written where it is asked for, so that a row may be written where it was read.
//
// Grid: x = batch and head, y = groups of channels. Any strides and alignment; the vector forms
// need groups of four neighbours that can be accessed at once, in states, B and C.

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

constexpr int warps_per_block = 4;
constexpr int lane_elements = 4;
constexpr unsigned all_lanes = ~0U;

enum class form {
  one_token,       ///< groups of four neighbours; the state leaves the registers as it is written
  several_tokens,  ///< the same for any number of tokens
  any,             ///< any strides and alignment
};

/// Lanes: per row of the state. Rows: of the state, per lane. Groups of four elements per row and
/// lane. Wide: the block's warps share one row. Blocks: that run at once on a multiprocessor.
template <class State, form Form, int Lanes, int Rows, int Groups, bool Wide, int Blocks>
struct layout {
  static constexpr bool vector = Form != form::any;
  static constexpr bool one_token = Form == form::one_token;
  static constexpr int blocks = Blocks;
  static constexpr int lanes = Lanes;
  static constexpr int rows = Rows;
  static constexpr int groups = Groups;
  static constexpr bool wide = Wide;
  static constexpr int side_by_side = 32 / Lanes;
  static constexpr int spread = Lanes / Rows;  ///< lanes that get the same output
  static constexpr int warp_rows = Rows * side_by_side;
  static constexpr int warp_columns = Groups * Lanes * lane_elements;
  static constexpr int most_threads = Wide ? 512 : warps_per_block * 32;
  using state = State;
};

/// Whether each of the slots [begin, end) of a row is one of the pool's or -1.
__device__ bool has_good_slots(state_end_tensor const& of, std::int64_t row, std::int64_t begin,
                               std::int64_t end) {
  if (of.states.data == nullptr || of.slots.data == nullptr) return true;
  auto const* const slots = static_cast<int const*>(of.slots.data) + row * of.slots.stride0;
  for (std::int64_t column = begin; column < end; ++column) {
    int const slot = slots[of.per_token ? column * of.slots.stride1 : 0];
    if (slot >= of.limit || slot < -1) return false;
  }
  return true;
}

/// Where a state lies, in elements from its tensor's data; -1 = nowhere. The row's slots are good.
__device__ std::int64_t place_of(state_end_tensor const& end, std::int64_t row,
                                 std::int64_t column) {
  if (end.states.data == nullptr) return -1;
  if (end.slots.data == nullptr) {
    return row * end.states.row + (end.per_token ? column * end.token : 0);
  }
  std::int64_t const at =
      row * end.slots.stride0 + (end.per_token ? column * end.slots.stride1 : 0);
  int const slot = static_cast<int const*>(end.slots.data)[at];
  return slot < 0 ? -1 : slot * end.states.row;
}

__device__ bool all_none(state_end_tensor const& end, std::int64_t row) {
  if (end.slots.data == nullptr) return true;
  std::int64_t const columns = end.per_token ? end.columns : 1;
  auto const* const slots = static_cast<int const*>(end.slots.data) + row * end.slots.stride0;
  for (std::int64_t k = 0; k < columns; ++k) {
    if (slots[k * end.slots.stride1] != -1) return false;
  }
  return true;
}

/// Which of the states that the previous call left the row starts from; -1 where its count is bad.
__device__ std::int64_t source_column(state_update_call const& call, std::int64_t row) {
  if (call.num_accepted.data == nullptr) return 0;
  std::int64_t const column =
      static_cast<int const*>(call.num_accepted.data)[row * call.num_accepted.stride0] -
      call.of_first;
  return column < call.source.columns ? column : -1;
}

/// What a thread works on.
struct work_place {
  std::int64_t row = 0;
  int head = 0;
  int first_p = 0;    ///< of the warp
  int column = 0;     ///< first n of the thread
  int side = 0;       ///< which of the rows that lie side by side
  int own_row = 0;    ///< of its rows, the one whose output the thread gets
  bool owns = false;  ///< the thread is the one of several that finishes it
};

template <class Layout>
__device__ work_place find_work(state_update_call const& call) {
  int const thread = static_cast<int>(threadIdx.x);
  int const warp = thread / 32;
  auto const heads = static_cast<unsigned>(call.heads);
  auto const block = static_cast<int>(blockIdx.y);
  work_place place;
  place.row = blockIdx.x / heads;
  place.head = static_cast<int>(blockIdx.x % heads);
  place.first_p = (Layout::wide ? block : block * warps_per_block + warp) * Layout::warp_rows;
  int const lane = thread % 32;
  place.side = lane / Layout::lanes;
  place.column =
      (Layout::wide ? warp * Layout::warp_columns : 0) + lane % Layout::lanes * lane_elements;
  place.own_row = lane % Layout::lanes / Layout::spread;
  place.owns = lane % Layout::spread == 0 && (!Layout::wide || warp == 0);
  return place;
}

template <class Layout>
using state_registers = float4[Layout::rows][Layout::groups];

template <class Layout>
__device__ void load_state(state_update_call const& call, work_place const& place,
                           std::int64_t source, state_registers<Layout>& state) {
  using element = typename Layout::state;
  state_tensor const& from = call.source.states;
  std::int64_t const stride = Layout::vector ? 1 : from.n;
  int const rows_left = source < 0 ? 0 : call.headdim - place.first_p - place.side;
  element const* at = static_cast<element const*>(from.data) + source + place.head * from.head +
                      (place.first_p + place.side) * from.p + place.column * stride;
#pragma unroll
  for (int r = 0; r < Layout::rows; ++r) {
#pragma unroll
    for (int g = 0; g < Layout::groups; ++g) {
      int const step = g * Layout::lanes * lane_elements;
      int const columns_left = call.dstate - place.column - step;
      state[r][g] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
      if (r * Layout::side_by_side >= rows_left || columns_left <= 0) continue;
      if constexpr (Layout::vector) {
        state[r][g] = load_four(at + step);
      } else {
        state[r][g] = load_some(at + step * stride, stride, columns_left);
      }
    }
    at += Layout::side_by_side * from.p;
  }
}

/// One row of the state of one thread, after a token. `element_number`: of the first element.
template <class Layout>
__device__ void store_row(state_update_call const& call, float4 const (&row)[Layout::groups],
                          typename Layout::state* at, int columns_left, detail::rounding_key key,
                          std::uint32_t element_number) {
  std::int64_t const stride = Layout::vector ? 1 : call.target.states.n;
#pragma unroll
  for (int g = 0; g < Layout::groups; ++g) {
    int const step = g * Layout::lanes * lane_elements;
    int const count = columns_left - step;
    if (count <= 0) continue;
    if constexpr (sizeof(typename Layout::state) == 2) {
      if (call.stochastic) {
        store_stochastically(at + step * stride, stride, count, row[g], key, element_number + step);
        continue;
      }
    }
    if constexpr (Layout::vector) {
      store_four(at + step, row[g]);
    } else {
      store_some(at + step * stride, stride, count, row[g]);
    }
  }
}

/// Sums of every row over the threads that share it; each thread gets that of its own_row. Halves
/// the rows with the lanes, so that a step adds what the next one needs and no more.
template <class Layout>
__device__ float sum_rows(float (&sums)[Layout::rows], float* shared) {
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int distance = Layout::lanes / 2;
#pragma unroll
  for (int left = Layout::rows / 2; left > 0; left /= 2) {
    bool const upper = (lane & distance) != 0;
#pragma unroll
    for (int r = 0; r < left; ++r) {
      float const kept = upper ? sums[r + left] : sums[r];
      float const given = upper ? sums[r] : sums[r + left];
      sums[r] = kept + __shfl_xor_sync(all_lanes, given, distance);
    }
    distance /= 2;
  }
  float sum = sums[0];
#pragma unroll
  for (int step = Layout::spread / 2; step > 0; step /= 2) {
    sum += __shfl_xor_sync(all_lanes, sum, step);
  }
  if constexpr (Layout::wide) {
    __syncthreads();  // who still reads the previous sum
    if (lane == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0F;
    for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += shared[w];
  }
  return sum;
}

template <class Layout>
__global__ void __launch_bounds__(Layout::most_threads, Layout::blocks)
    state_update_kernel(__grid_constant__ state_update_call const call) {
  __shared__ float shared[Layout::wide ? 16 : 1];
  work_place const place = find_work<Layout>(call);
  std::int64_t const row = place.row;
  int const head = place.head;
  int const group = head / call.group_heads;
  int const own_p = place.first_p + place.own_row * Layout::side_by_side + place.side;
  bool const owns = place.owns && own_p < call.headdim;
  if (place.first_p >= call.headdim) return;

  if (call.skip_padding && all_none(call.source, row) && all_none(call.target, row)) {
    if (!owns) return;
    for (std::int64_t k = 0; k < call.tokens; ++k) {
      store_element(call.out.data, call.io,
                    row * call.out.batch + k * call.out.token + head * call.out.head + own_p, 0.0F);
    }
    return;
  }

  state_registers<Layout> state;
  // A row with a bad index reads no state and writes nothing.
  std::int64_t const column = source_column(call, row);
  int bad = 0;
  if (column < 0) bad |= status_bad_count;
  if (!has_good_slots(call.source, row, column, column + 1) ||
      !has_good_slots(call.target, row, 0, call.target.per_token ? call.target.columns : 1)) {
    bad |= status_bad_slot;
  }
  if (bad != 0) {
    if (threadIdx.x == 0) atomicOr(call.status, bad);
    return;
  }
  std::int64_t const source = place_of(call.source, row, column);
  load_state<Layout>(call, place, source, state);

  float const rate = load_element(call.A.data, dtype::f32, head * call.A.stride0);
  std::uint32_t bias_bits = 0;
  if (call.dt_bias.data != nullptr) {
    bias_bits = load_bits(call.dt_bias.data, call.dt_bias.type, head * call.dt_bias.stride0);
  }
  std::uint32_t skip_bits = 0;
  if (call.D.data != nullptr && owns) {
    skip_bits =
        load_bits(call.D.data, call.D.type,
                  head * call.D.stride0 + (call.D_per_channel ? own_p * call.D.stride1 : 0));
  }
  int row_id = static_cast<int>(row);
  if (call.row_ids.data != nullptr) {
    row_id = static_cast<int const*>(call.row_ids.data)[row * call.row_ids.stride0];
  }

  state_tensor const& to = call.target.states;
  int const rows_left = call.headdim - place.first_p - place.side;
  int const columns_left = call.dstate - place.column;
  std::int64_t const to_row = Layout::side_by_side * to.p;
  std::int64_t const to_first = head * to.head + (place.first_p + place.side) * to.p +
                                place.column * (Layout::vector ? 1 : to.n);
  std::int64_t x_at = row * call.x.batch + head * call.x.head + own_p;
  std::int64_t z_at = row * call.z.batch + head * call.z.head + own_p;
  std::int64_t out_at = row * call.out.batch + head * call.out.head + own_p;
  std::int64_t dt_at = row * call.dt.batch + head * call.dt.head;
  std::int64_t B_at = row * call.B.batch + group * call.B.head + place.column;
  std::int64_t C_at = row * call.C.batch + group * call.C.head + place.column;

  // Without tokens the state is handed on, as by one step of length zero.
  bool const real = Layout::one_token || call.tokens > 0;
  std::int64_t const steps = Layout::one_token       ? 1
                             : real                  ? call.tokens
                             : call.target.per_token ? 0
                                                     : 1;
#pragma unroll 1
  for (std::int64_t k = 0; k < steps; ++k) {
    // All loads first: none waits for another.
    std::uint32_t dt_bits = 0;
    std::uint32_t x_bits = 0;
    std::uint32_t z_bits = 0;
    uint4 b_bits[Layout::groups];
    uint4 c_bits[Layout::groups];
    if (real) dt_bits = load_bits(call.dt.data, call.dt_type, dt_at);
    if (real && own_p < call.headdim) {
      x_bits = load_bits(call.x.data, call.io, x_at);
      if (call.z.data != nullptr) z_bits = load_bits(call.z.data, call.io, z_at);
    }
#pragma unroll
    for (int g = 0; g < Layout::groups; ++g) {
      int const step = g * Layout::lanes * lane_elements;
      int const count = real ? columns_left - step : 0;
      b_bits[g] = load_four_bits(call.B.data, call.io, B_at + step, count, Layout::vector);
      c_bits[g] = load_four_bits(call.C.data, call.io, C_at + step, count, Layout::vector);
    }
    float const x = value_of(x_bits, call.io);
    float const z = value_of(z_bits, call.io);
    float delta = 0.0F;
    if (real) {
      float const bias = value_of(bias_bits, call.dt_bias.type);
      delta = step_size(value_of(dt_bits, call.dt_type) + bias, call.softplus, call.delta_low,
                        call.delta_high);
    }
    float4 b[Layout::groups];
    float4 c[Layout::groups];
#pragma unroll
    for (int g = 0; g < Layout::groups; ++g) {
      b[g] = values_of(b_bits[g], call.io, Layout::vector);
      c[g] = values_of(c_bits[g], call.io, Layout::vector);
    }
    float const decay = expf(delta * rate);
    bool const stores = call.target.per_token || k + 1 == steps;
    std::int64_t const target = stores ? place_of(call.target, row, k) : -1;
    detail::rounding_key key;
    if (sizeof(typename Layout::state) == 2 && call.stochastic && target >= 0) {
      key = detail::make_rounding_key(call.rounding_seed, row_id, head, k);
    }

    auto* to_at = static_cast<typename Layout::state*>(to.data) + target + to_first;
    int const stored_rows = target >= 0 ? rows_left : 0;
    float sums[Layout::rows];
#pragma unroll
    for (int r = 0; r < Layout::rows; ++r) {
      int const from = place.side * Layout::lanes + r * Layout::spread;  // whose x it is
      float const scaled = delta * __shfl_sync(all_lanes, x, from);
      float sum = 0.0F;
#pragma unroll
      for (int g = 0; g < Layout::groups; ++g) {
        float4& s = state[r][g];
        s.x = s.x * decay + scaled * b[g].x;
        s.y = s.y * decay + scaled * b[g].y;
        s.z = s.z * decay + scaled * b[g].z;
        s.w = s.w * decay + scaled * b[g].w;
        sum += s.x * c[g].x + s.y * c[g].y + s.z * c[g].z + s.w * c[g].w;
      }
      sums[r] = sum;
      if (r * Layout::side_by_side < stored_rows) {
        int const p = place.first_p + r * Layout::side_by_side + place.side;
        auto const number =
            static_cast<std::uint32_t>(p) * static_cast<std::uint32_t>(call.dstate) +
            static_cast<std::uint32_t>(place.column);
        store_row<Layout>(call, state[r], to_at, columns_left, key, number);
      }
      to_at += to_row;
    }
    float const y = sum_rows<Layout>(sums, shared);
    if (real && owns) {
      float result = y + value_of(skip_bits, call.D.type) * x;
      if (call.z.data != nullptr) result *= z / (1.0F + expf(-z));
      store_element(call.out.data, call.io, out_at, result);
    }
    x_at += call.x.token;
    z_at += call.z.token;
    out_at += call.out.token;
    dt_at += call.dt.token;
    B_at += call.B.token;
    C_at += call.C.token;
  }
}

template <class Layout>
cudaError_t launch(state_update_call const& call, cudaStream_t stream) {
  constexpr int block_rows = Layout::wide ? 1 : warps_per_block * Layout::warp_rows;
  dim3 const grid(static_cast<unsigned>(call.batch * call.heads),
                  static_cast<unsigned>((call.headdim + block_rows - 1) / block_rows));
  if (grid.x == 0 || grid.y == 0) return cudaSuccess;
  int const warps = Layout::wide ? (call.dstate + Layout::warp_columns - 1) / Layout::warp_columns
                                 : warps_per_block;
  state_update_kernel<Layout><<<grid, static_cast<unsigned>(warps * 32), 0, stream>>>(call);
  return cudaGetLastError();
}

template <class State, form Form>
cudaError_t launch_vectors(state_update_call const& call, int rows, cudaStream_t stream) {
  constexpr int blocks = Form == form::one_token ? 5 : 4;
  if (call.dstate > 256) return launch<layout<State, Form, 32, 4, 4, false, 4>>(call, stream);
  if (call.dstate > 128) return launch<layout<State, Form, 32, 8, 2, false, 4>>(call, stream);
  if (call.dstate <= 64) return launch<layout<State, Form, 16, 8, 1, false, blocks>>(call, stream);
  if (rows == many_rows || Form != form::one_token) {
    return launch<layout<State, Form, 32, many_rows, 1, false, blocks>>(call, stream);
  }
  return launch<layout<State, form::one_token, 32, few_rows, 1, false, 6>>(call, stream);
}

template <class State>
cudaError_t launch_for(state_update_call const& call, int rows, cudaStream_t stream) {
  if (call.dstate > 512) return launch<layout<State, form::any, 32, 1, 4, true, 1>>(call, stream);
  if (!call.vector) return launch<layout<State, form::any, 32, 4, 4, false, 3>>(call, stream);
  return call.tokens == 1 ? launch_vectors<State, form::one_token>(call, rows, stream)
                          : launch_vectors<State, form::several_tokens>(call, rows, stream);
}

}  // namespace

cudaError_t launch_state_update(state_update_call const& call, int rows, cudaStream_t stream) {
  switch (call.state) {
    case dtype::bf16: return launch_for<__nv_bfloat16>(call, rows, stream);
    case dtype::f16: return launch_for<__half>(call, rows, stream);
    default: return launch_for<float>(call, rows, stream);
  }
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
