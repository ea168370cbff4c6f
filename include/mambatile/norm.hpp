#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <mambatile/dtype.hpp>
#include <mambatile/export.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/tensor_view.hpp>

/// @file
/// gated_rms_norm: the norm between the scan and the output projection.
///
/// Source: Dao and Gu, "Transformers are SSMs" (2024), section 7; Zhang and Sennrich, "Root mean
/// square layer normalization" (2019). Per row, over each run of group_size channels:
///
///     rms(v) = v / sqrt(mean(v^2) + eps)
///     norm_before_gate = false:  out = rms(x silu(z)) weight + bias
///     norm_before_gate = true:   out = (rms(x) weight + bias) silu(z)
///
/// The mean is taken in f32 or better. A group of zeros gives zeros (plus bias), for eps = 0 too.

namespace mambatile {
inline namespace v0 {

/// The tensors of one call. An absent tensor is a default-constructed view; which optional ones are
/// present must match the problem. c = channels; x may have one to four outer axes, all of them
/// rows.
///
/// Outer strides are free; x, z and out need stride 1 on their last axis. out may lie in the same
/// buffer as inputs where no element is shared; any other overlap is refused.
struct gated_rms_norm_arguments {
  const_tensor_view x = {};       ///< (.., c), io type
  const_tensor_view z = {};       ///< as x, io type; optional
  const_tensor_view weight = {};  ///< (c), f32 or io type
  const_tensor_view bias = {};    ///< (c), f32 or io type; optional
  tensor_view out = {};           ///< as x, io type
};

/// What a plan depends on. max_rows is a capacity: one plan serves every smaller call.
struct gated_rms_norm_problem {
  using arguments_type = gated_rms_norm_arguments;
  static constexpr std::string_view operator_name = "gated_rms_norm";

  std::int64_t max_rows = 0;  ///< product of the outer extents
  std::int64_t channels = 0;
  std::int64_t group_size = 0;  ///< divides channels; 0 = all channels are one group

  dtype io = dtype::f32;      ///< x, z, out
  dtype weight = dtype::f32;  ///< f32 or the io type
  dtype bias = dtype::f32;    ///< f32 or the io type

  float eps = 1e-5F;  ///< >= 0
  bool norm_before_gate = false;
  bool has_z = false;
  bool has_bias = false;

  int threads = 0;  ///< host: most threads a call uses; 0 = all of the backend's

  friend bool operator==(gated_rms_norm_problem const&, gated_rms_norm_problem const&) = default;
};

/// One line with every field that differs from its default.
[[nodiscard]] MAMBATILE_EXPORT std::string to_string(gated_rms_norm_problem const& problem);

using gated_rms_norm_plan = operator_plan<gated_rms_norm_problem>;
extern template class MAMBATILE_EXPORT operator_plan<gated_rms_norm_problem>;

/// What the tensors of a call do not tell.
struct gated_rms_norm_options {
  std::int64_t group_size = 0;
  float eps = 1e-5F;
  bool norm_before_gate = false;
  int threads = 0;
};

/// The smallest problem that covers one call: sizes, types and presence are read off the tensors.
/// Shapes that do not fit together are found when the plan executes.
/// @throws invalid_argument where a needed tensor is absent or has the wrong rank.
[[nodiscard]] MAMBATILE_EXPORT gated_rms_norm_problem
make_problem(gated_rms_norm_arguments const& arguments, gated_rms_norm_options const& options = {});

}  // namespace v0
}  // namespace mambatile

template <>
struct std::hash<mambatile::gated_rms_norm_problem> {
  [[nodiscard]] MAMBATILE_EXPORT std::size_t operator()(
      mambatile::gated_rms_norm_problem const& problem) const noexcept;
};
