#include "norm_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "call_views.hpp"
#include "device.hpp"
#include "kernels/gated_rms_norm.hpp"
#include "norm_rows.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

std::int64_t group_size_of(gated_rms_norm_problem const& problem) {
  return problem.group_size == 0 ? problem.channels : problem.group_size;
}

row_tensor rows_of(const_tensor_view const& view) {
  row_tensor rows;
  if (!view) return rows;
  rows.data = const_cast<void*>(view.data);
  rows.axes = view.rank - 1;
  for (int axis = 0; axis < rows.axes; ++axis) {
    rows.extents[axis] = view.extent(axis);
    rows.strides[axis] = view.stride(axis);
  }
  return rows;
}

class norm_plan_implementation final : public detail::plan_implementation<gated_rms_norm_problem> {
 public:
  norm_plan_implementation(gated_rms_norm_problem const& problem, device where)
      : problem_(problem), where_(where) {
    description_ = fmt::format("cuda sm_{} a block per row and group",
                               properties_of(where.index).architecture);
  }

  void execute(gated_rms_norm_arguments const& arguments, workspace_view /*workspace*/,
               queue const& on) const override {
    device_scope const scope(where_.index);
    norm_call call;
    call.rows = detail::norm_rows(arguments.x);
    call.channels = static_cast<int>(problem_.channels);
    call.group_size = static_cast<int>(group_size_of(problem_));
    call.io = problem_.io;
    call.x = rows_of(arguments.x);
    call.z = rows_of(arguments.z);
    call.out = rows_of(arguments.out);
    call.weight = as_small_tensor(arguments.weight);
    call.bias = as_small_tensor(arguments.bias);
    call.eps = problem_.eps;
    call.norm_before_gate = problem_.norm_before_gate;
    check(launch_gated_rms_norm(call, static_cast<cudaStream_t>(on.native)),
          "gated_rms_norm: launching the kernel");
  }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept override { return 0; }
  [[nodiscard]] std::string_view description() const noexcept override { return description_; }

 private:
  gated_rms_norm_problem problem_;
  device where_;
  std::string description_;
};

}  // namespace

support supports_gated_rms_norm(gated_rms_norm_problem const& problem) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  std::int64_t const size = group_size_of(problem);
  std::int64_t const groups = size == 0 ? 0 : problem.channels / size;
  if (problem.channels > most || (groups > 0 && problem.max_rows > most / groups)) {
    return {false, fmt::format("max_rows = {} with {} groups of {} channels are more than 32-bit "
                               "block numbers can count",
                               problem.max_rows, groups, size)};
  }
  return {true, {}};
}

std::shared_ptr<detail::plan_implementation<gated_rms_norm_problem> const> make_gated_rms_norm_plan(
    gated_rms_norm_problem const& problem, device where) {
  return std::make_shared<norm_plan_implementation const>(problem, where);
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
