#include "bench/scan_variants.hpp"

#include <algorithm>
#include <cstring>

namespace mambatile::program {
namespace {

constexpr std::int64_t sequences_per_row = 4;
constexpr std::int64_t tokens_between_snapshots = 256;

evaluation::scan_inputs_request with_variant(evaluation::scan_inputs_request request,
                                             std::string_view variant) {
  request.with_z = variant == "z";
  request.with_initial_states = variant != "zero-state";
  if (variant == "cu_seqlens") {
    // One row of all tokens.
    request.seqlen *= request.batch;
    request.batch = 1;
  }
  return request;
}

std::size_t bytes_of(const_tensor_view const& view) {
  return static_cast<std::size_t>(view.size()) * size_of(view.type);
}

}  // namespace

scan_workload::scan_workload(std::string_view variant,
                             evaluation::scan_inputs_request const& request)
    : request_(with_variant(request, variant)), inputs_(request_), arguments_(inputs_.arguments) {
  auto const& shape = request_.shape;
  arguments_.out =
      allocate(request_.io, {request_.batch, request_.seqlen, shape.nheads, shape.headdim});
  arguments_.final_states = allocate_states(request_.batch);
  if (variant == "seq_idx" || variant == "cu_seqlens") add_packing(variant);
  if (variant == "slots") add_slots();
  if (variant == "snapshots") add_snapshots();
  if (variant == "unaligned") shift_all();
}

double scan_workload::tensor_bytes() const noexcept {
  auto const& a = arguments_;
  double sum = 0;
  for (const_tensor_view const& view :
       {a.x, a.dt, a.A, a.B, a.C, a.D, a.z, a.dt_bias, a.initial_states, a.cu_seqlens, a.seq_idx,
        a.state_source, a.state_target, const_tensor_view(a.out), const_tensor_view(a.final_states),
        const_tensor_view(a.intermediate_states)}) {
    sum += static_cast<double>(bytes_of(view));
  }
  return sum;
}

tensor_view scan_workload::allocate(dtype type, std::initializer_list<std::int64_t> shape) {
  auto& tensor = memory_.emplace_back(type, shape);
  std::memset(tensor.view().data, 0, tensor.bytes());  // so that its pages are there
  return tensor.view();
}

tensor_view scan_workload::allocate_states(std::int64_t rows) {
  auto const& [name, h, p, g, n, batch] = request_.shape;
  auto view = allocate(request_.state, {rows, h, p, n});
  if (request_.layout == state_layout::headdim_innermost) view.strides = {h * p * n, p * n, 1, p};
  return view;
}

void scan_workload::add_packing(std::string_view variant) {
  auto const l = request_.seqlen;
  auto const sequences = request_.batch * sequences_per_row;
  if (variant == "seq_idx") {
    auto const ids = allocate(dtype::i32, {request_.batch, l});
    auto* const data = static_cast<std::int32_t*>(ids.data);
    for (std::int64_t token = 0; token < request_.batch * l; ++token) {
      data[token] =
          static_cast<std::int32_t>(token % l * sequences_per_row / std::max<std::int64_t>(l, 1));
    }
    arguments_.seq_idx = ids;
    return;
  }
  auto const bounds = allocate(dtype::i32, {sequences + 1});
  auto* const data = static_cast<std::int32_t*>(bounds.data);
  for (std::int64_t i = 0; i <= sequences; ++i) {
    data[i] = static_cast<std::int32_t>(l * i / sequences);
  }
  arguments_.cu_seqlens = bounds;
  arguments_.initial_states = allocate_states(sequences);
  arguments_.final_states = allocate_states(sequences);
}

void scan_workload::add_slots() {
  // A pool of twice the rows; each row reads one slot and writes another.
  auto const rows = request_.batch;
  auto const pool = allocate_states(2 * rows);
  auto const source = allocate(dtype::i32, {rows});
  auto const target = allocate(dtype::i32, {rows});
  for (std::int64_t row = 0; row < rows; ++row) {
    static_cast<std::int32_t*>(source.data)[row] = static_cast<std::int32_t>(2 * row + 1);
    static_cast<std::int32_t*>(target.data)[row] = static_cast<std::int32_t>(2 * row);
  }
  arguments_.initial_states = pool;
  arguments_.final_states = pool;
  arguments_.state_source = source;
  arguments_.state_target = target;
}

void scan_workload::add_snapshots() {
  auto const& [name, h, p, g, n, batch] = request_.shape;
  auto const rows = request_.seqlen / tokens_between_snapshots;
  auto snapshots = allocate(request_.state, {request_.batch, rows, h, p, n});
  if (request_.layout == state_layout::headdim_innermost) {
    snapshots.strides = {rows * h * p * n, h * p * n, p * n, 1, p};
  }
  arguments_.intermediate_states = snapshots;
  inputs_.options.intermediate_every = tokens_between_snapshots;
}

void scan_workload::shift_all() {
  // Each tensor begins one element beyond a cache line.
  auto const shift = [&](auto& view) {
    if (!view) return;
    auto const element = size_of(view.type);
    auto const memory = allocate(view.type, {view.size() + 1});
    auto* const data = static_cast<std::byte*>(memory.data) + element;
    std::memcpy(data, view.data, bytes_of(view));
    view.data = data;
  };
  shift(arguments_.x);
  shift(arguments_.dt);
  shift(arguments_.B);
  shift(arguments_.C);
  shift(arguments_.initial_states);
  shift(arguments_.out);
  shift(arguments_.final_states);
}

}  // namespace mambatile::program
