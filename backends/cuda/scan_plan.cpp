#include "scan_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "call_views.hpp"
#include "device.hpp"
#include "kernels/prepare.hpp"
#include "kernels/repack.hpp"
#include "kernels/scan_kernels.hpp"
#include "kernels/skip.hpp"
#include "kernels/state_io.hpp"
#include "scan_call.hpp"
#include "scan_structure.hpp"
#include "scan_workspace.hpp"
#include "status_bits.hpp"
#include "status_word.hpp"
#include "tuning_scan.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

constexpr std::int64_t most_stride = 0x7fffffff;

bool is_multiple(std::int64_t elements, std::size_t element_bytes) {
  return elements > 0 && elements <= most_stride &&
         elements * static_cast<std::int64_t>(element_bytes) % 16 == 0;
}

/// Whether the tile kernels can read it where it lies: data and strides are multiples of 16 bytes,
/// and strides fit 32 bits. Strides over one element do not count.
bool is_aligned(token_tensor const& tensor, std::size_t element_bytes, std::int64_t batch,
                std::int64_t tokens, std::int64_t heads) {
  return reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0 &&
         (batch <= 1 || is_multiple(tensor.batch, element_bytes)) &&
         (tokens <= 1 || is_multiple(tensor.token, element_bytes)) &&
         (heads <= 1 || is_multiple(tensor.head, element_bytes));
}

/// Strides over one element, replaced by ones that a descriptor takes.
void settle_strides(token_tensor& tensor, std::size_t element_bytes, std::int64_t batch,
                    std::int64_t tokens, std::int64_t heads, std::int64_t columns) {
  auto const unit = static_cast<std::int64_t>(16 / element_bytes);
  std::int64_t const row = (columns + unit - 1) / unit * unit;
  if (heads <= 1) tensor.head = row;
  if (tokens <= 1) tensor.token = row;
  if (batch <= 1) tensor.batch = row;
}

/// One batch row of a view.
template <class View>
View row_of(View view, std::int64_t row) {
  if (!view) return view;
  auto const offset = row * view.stride(0) * static_cast<std::int64_t>(size_of(view.type));
  if constexpr (std::is_same_v<View, tensor_view>) {
    view.data = static_cast<char*>(view.data) + offset;
  } else {
    view.data = static_cast<char const*>(view.data) + offset;
  }
  view.extents[0] = 1;
  return view;
}

scan_arguments row_of(scan_arguments arguments, std::int64_t row) {
  for (auto* view : {&arguments.x, &arguments.dt, &arguments.B, &arguments.C, &arguments.z,
                     &arguments.seq_idx, &arguments.state_source, &arguments.state_target}) {
    *view = row_of(*view, row);
  }
  for (auto* view : {&arguments.out, &arguments.intermediate_states, &arguments.total_decay}) {
    *view = row_of(*view, row);
  }
  if (!arguments.state_source) arguments.initial_states = row_of(arguments.initial_states, row);
  if (!arguments.state_target) arguments.final_states = row_of(arguments.final_states, row);
  return arguments;
}

class scan_plan_implementation final : public detail::plan_implementation<scan_problem> {
 public:
  scan_plan_implementation(scan_problem const& problem, device where)
      : problem_(problem), where_(where) {
    device_properties const properties = properties_of(where.index);
    structure_ = choose_structure(problem, properties);
    workspace_ = book_workspace(problem, structure_);
    description_ = fmt::format("cuda sm_{} {}", properties.architecture, describe(structure_));
  }

  void execute(scan_arguments const& arguments, workspace_view workspace,
               queue const& on) const override;
  [[nodiscard]] execution_status status(workspace_view workspace, queue const& on) const override;

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override { return workspace_.bytes; }
  [[nodiscard]] std::string_view description() const noexcept override { return description_; }

 private:
  [[nodiscard]] bool has_device_indices() const noexcept {
    return problem_.pack != packing::dense || problem_.has_state_source ||
           problem_.has_state_target;
  }
  /// Makes the tensor readable for the tile kernels, by a copy if need be.
  void bring(token_tensor& tensor, std::size_t offset, scan_sizes const& size, std::int64_t batch,
             std::int64_t heads, std::int64_t columns, void* base, cudaStream_t stream) const;
  void execute_rows(scan_arguments const& arguments, void* workspace, cudaStream_t stream) const;
  void launch_states(scan_call const& call, cudaStream_t stream) const;
  void launch_forward(scan_call const& call, cudaStream_t stream) const;

  scan_problem problem_;
  device where_;
  scan_structure structure_;
  scan_workspace workspace_;
  std::string description_;
};

void scan_plan_implementation::bring(token_tensor& tensor, std::size_t offset,
                                     scan_sizes const& size, std::int64_t batch, std::int64_t heads,
                                     std::int64_t columns, void* base, cudaStream_t stream) const {
  std::size_t const bytes = size_of(problem_.io);
  if (tensor.data == nullptr) return;
  if (is_aligned(tensor, bytes, batch, size.seqlen, heads)) {
    settle_strides(tensor, bytes, batch, size.seqlen, heads, columns);
    return;
  }
  token_tensor const copy = aligned_copy(base, offset, bytes, size.seqlen, heads, columns);
  check(launch_repack(tensor, copy, static_cast<int>(bytes), static_cast<int>(batch), size.seqlen,
                      static_cast<int>(heads), static_cast<int>(columns), nullptr, stream),
        "chunk_scan: copying an unaligned view");
  tensor = copy;
}

void scan_plan_implementation::launch_states(scan_call const& call, cudaStream_t stream) const {
  cudaError_t error = cudaSuccess;
  switch (structure_.kernels) {
    case scan_kernels::tuned_bf16: error = launch_states_bf16(call, stream); break;
    case scan_kernels::general_bf16: error = launch_states_general_bf16(call, stream); break;
    case scan_kernels::general_f16: error = launch_states_general_f16(call, stream); break;
    case scan_kernels::general_tf32: error = launch_states_general_tf32(call, stream); break;
    case scan_kernels::general_f32: error = launch_states_general_f32(call, stream); break;
  }
  check(error, "chunk_scan: launching the segment states");
}

void scan_plan_implementation::launch_forward(scan_call const& call, cudaStream_t stream) const {
  int const slabs = structure_.slabs;
  for (int slab = 0; slab < slabs; ++slab) {
    cudaError_t error = cudaSuccess;
    switch (structure_.kernels) {
      case scan_kernels::tuned_bf16:
        error = call.size.packed
                    ? launch_forward_packed_bf16(call, stream)
                    : launch_forward_bf16(call, structure_.columns, slab, slabs, stream);
        break;
      case scan_kernels::general_bf16:
        error = launch_forward_general_bf16(call, slab, slabs, stream);
        break;
      case scan_kernels::general_f16:
        error = launch_forward_general_f16(call, slab, slabs, stream);
        break;
      case scan_kernels::general_tf32:
        error = launch_forward_general_tf32(call, slab, slabs, stream);
        break;
      case scan_kernels::general_f32:
        error = launch_forward_general_f32(call, slab, slabs, stream);
        break;
    }
    check(error, "chunk_scan: launching the forward pass");
  }
}

void scan_plan_implementation::execute(scan_arguments const& arguments, workspace_view workspace,
                                       queue const& on) const {
  device_scope const scope(where_.index);
  auto* const stream = static_cast<cudaStream_t>(on.native);
  std::int64_t const batch = arguments.x.extent(0);
  bool const packed = problem_.pack == packing::cu_seqlens;
  std::int64_t const sequences = packed ? arguments.cu_seqlens.extent(0) - 1 : batch;
  if (has_device_indices()) clear_status_word(workspace, stream, "chunk_scan");
  if (problem_.nheads == 0 || sequences == 0) return;
  // Descriptors hold 32-bit strides. Rows that lie further apart go one by one.
  bool far = false;
  for (auto const* view : {&arguments.x, &arguments.z, &arguments.B, &arguments.C}) {
    far = far || (*view && view->stride(0) > most_stride);
  }
  far = far || arguments.out.stride(0) > most_stride ||
        arguments.x.extent(1) * problem_.nheads * (problem_.headdim + 8) > most_stride;
  if (batch > 1 && far) {
    for (std::int64_t row = 0; row < batch; ++row) {
      execute_rows(row_of(arguments, row), workspace.data, stream);
    }
  } else {
    execute_rows(arguments, workspace.data, stream);
  }
}

void scan_plan_implementation::execute_rows(scan_arguments const& arguments, void* workspace,
                                            cudaStream_t stream) const {
  std::int64_t const batch = arguments.x.extent(0);
  std::int64_t const seqlen = arguments.x.extent(1);
  bool const packed = problem_.pack == packing::cu_seqlens;
  std::int64_t const sequences = packed ? arguments.cu_seqlens.extent(0) - 1 : batch;

  scan_call call;
  call.size = sizes_of(problem_, structure_, batch, seqlen, sequences);
  call.prepared = prepared_in(workspace_, structure_, workspace);
  call.x = as_token_tensor(arguments.x);
  call.z = as_token_tensor(arguments.z);
  call.B = as_token_tensor(arguments.B);
  call.C = as_token_tensor(arguments.C);
  call.out = as_token_tensor(arguments.out);
  call.dt = as_token_tensor(arguments.dt);
  call.dt_type = problem_.dt;
  call.A = as_small_tensor(arguments.A);
  call.D = as_small_tensor(arguments.D);
  call.D_per_channel = problem_.D == skip::per_channel;
  call.dt_bias = as_small_tensor(arguments.dt_bias);
  call.softplus = problem_.dt_softplus;
  call.delta_low = problem_.dt_limit[0];
  call.delta_high = problem_.dt_limit[1];
  call.decay_limit = decay_limit;
  if (packed) {
    call.cu_seqlens = static_cast<int const*>(arguments.cu_seqlens.data);
    call.cu_stride = arguments.cu_seqlens.stride(0);
  }
  call.seq_idx = as_small_tensor(arguments.seq_idx);
  call.initial_states = as_state_tensor(arguments.initial_states);
  call.final_states = as_state_tensor(arguments.final_states);
  call.state_source = as_small_tensor(arguments.state_source);
  call.state_target = as_small_tensor(arguments.state_target);
  if (arguments.initial_states) {
    call.source_slots = static_cast<int>(arguments.initial_states.extent(0));
  }
  if (arguments.final_states) {
    call.target_slots = static_cast<int>(arguments.final_states.extent(0));
  }
  if (arguments.intermediate_states) {
    auto const& view = arguments.intermediate_states;
    call.intermediate_states = {view.data,      view.type,      view.stride(1),
                                view.stride(2), view.stride(3), view.stride(4)};
    call.intermediate_row = view.stride(0);
    call.intermediate_chunks = static_cast<int>(problem_.intermediate_every / chunk_tokens);
  }
  if (arguments.total_decay) {
    call.total_decay = static_cast<float*>(arguments.total_decay.data);
    call.total_decay_row = arguments.total_decay.stride(0);
    call.total_decay_head = arguments.total_decay.stride(1);
  }

  if (problem_.dstate == 0 || problem_.headdim == 0) {
    if (arguments.total_decay || packed) {
      check(launch_prepare(call, structure_.general(), stream),
            "chunk_scan: launching the first stage");
    }
    if (arguments.total_decay) {
      check(launch_total_decay(call, stream), "chunk_scan: launching the total decay");
    }
    check(launch_skip(call, problem_.io, stream), "chunk_scan: launching the skip connection");
    return;
  }

  bring(call.x, workspace_.x, call.size, batch, problem_.nheads, problem_.headdim, workspace,
        stream);
  bring(call.z, workspace_.z, call.size, batch, problem_.nheads, problem_.headdim, workspace,
        stream);
  bring(call.B, workspace_.B, call.size, batch, problem_.ngroups, problem_.dstate, workspace,
        stream);
  bring(call.C, workspace_.C, call.size, batch, problem_.ngroups, problem_.dstate, workspace,
        stream);
  std::size_t const io = size_of(problem_.io);
  token_tensor const out = call.out;
  // Stores write whole 16-byte units: what is narrower goes through the workspace.
  bool const out_copied =
      !is_aligned(out, io, batch, seqlen, problem_.nheads) || !is_multiple(problem_.headdim, io);
  if (out_copied) {
    call.out =
        aligned_copy(workspace, workspace_.out, io, seqlen, problem_.nheads, problem_.headdim);
  }
  settle_strides(call.out, io, batch, seqlen, problem_.nheads, problem_.headdim);

  // Final states go straight to their tensor where the forward kernel can write it.
  bool final_exported = false;
  if (arguments.final_states) {
    auto const& view = call.final_states;
    auto const aligned = [](std::int64_t stride) { return stride > 0 && stride % 4 == 0; };
    bool const direct =
        view.type == dtype::f32 && !arguments.state_target && problem_.dstate % 4 == 0 &&
        view.n == 1 && reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 &&
        (sequences == 1 || (aligned(view.row) && view.row <= most_stride)) &&
        (problem_.nheads == 1 || (aligned(view.head) && view.head <= most_stride)) &&
        aligned(view.p) && view.p <= most_stride;
    if (direct) {
      call.final_target = view;
      call.final_target.n = 1;
      if (sequences == 1) call.final_target.row = view.p;
      if (problem_.nheads == 1) call.final_target.head = view.p;
    } else {
      std::int64_t const columns = call.size.state_columns;
      std::int64_t const head =
          static_cast<std::int64_t>(call.size.row_tiles) * tile_rows * columns;
      call.final_target = {static_cast<char*>(workspace) + workspace_.final_states,
                           dtype::f32,
                           head * call.size.heads,
                           head,
                           columns,
                           1};
      final_exported = true;
    }
  }

  check(launch_prepare(call, structure_.general(), stream),
        "chunk_scan: launching the first stage");
  if (problem_.has_initial_states) {
    check(launch_gather_initial(call, stream), "chunk_scan: gathering initial states");
  }
  if (call.size.keep_last || (packed ? structure_.several_segments : call.size.row_segments > 1)) {
    launch_states(call, stream);
  }
  if (call.size.passed) {
    check(launch_pass_states(call, stream), "chunk_scan: passing states on");
  }
  launch_forward(call, stream);
  if (final_exported) {
    check(launch_export_final(call, stream), "chunk_scan: exporting final states");
  }
  if (arguments.total_decay) {
    check(launch_total_decay(call, stream), "chunk_scan: launching the total decay");
  }
  if (out_copied) {
    int const* const limit = packed ? call.cu_seqlens + sequences * call.cu_stride : nullptr;
    check(launch_repack(call.out, out, static_cast<int>(io), static_cast<int>(batch),
                        call.size.seqlen, call.size.heads, call.size.headdim, limit, stream),
          "chunk_scan: copying to an unaligned out");
  }
}

execution_status scan_plan_implementation::status(workspace_view workspace, queue const& on) const {
  device_scope const scope(where_.index);
  int const bits = read_status_word(has_device_indices(), workspace, on, "chunk_scan");
  if ((bits & status_bad_cu_seqlens) != 0) {
    return {false,
            "chunk_scan: cu_seqlens does not start at 0, decreases or ends beyond seqlen; the "
            "sequences concerned were left out"};
  }
  if ((bits & status_bad_seq_idx) != 0) {
    return {
        false,
        "chunk_scan: seq_idx decreases or has an entry below -1; each change of its entries >= 0 "
        "was taken for a new sequence"};
  }
  if ((bits & status_bad_slot) != 0) {
    return {false,
            "chunk_scan: state_source or state_target names a slot outside its pool; such rows "
            "started from zero or were not written"};
  }
  return {true, {}};
}

}  // namespace

std::shared_ptr<detail::plan_implementation<scan_problem> const> make_scan_plan(
    scan_problem const& problem, device where) {
  return std::make_shared<scan_plan_implementation>(problem, where);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
