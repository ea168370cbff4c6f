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
/// matmul: the projections of a model, in any mix of storage types, accumulated in f32.
///
///     out = (input_scale * x weight^T + bias) * column_scale      (accumulate: out += ...)

namespace mambatile {
inline namespace v0 {

/// The tensors of one call. An absent tensor is a default-constructed view; which optional ones are
/// present must match the problem. r = rows, i = in_features, o = out_features.
///
/// Row strides are free; the last axis of x, weight and out needs stride 1. out may lie in the same
/// buffer as inputs where no element is shared; any other overlap is refused.
struct matmul_arguments {
  const_tensor_view x = {};             ///< (r, i)
  const_tensor_view weight = {};        ///< (o, i)
  const_tensor_view bias = {};          ///< (o); optional
  const_tensor_view column_scale = {};  ///< (o), f32; optional
  tensor_view out = {};                 ///< (r, o)
};

/// What a plan depends on. max_rows is a capacity: one plan serves every smaller call.
struct matmul_problem {
  using arguments_type = matmul_arguments;
  static constexpr std::string_view operator_name = "matmul";

  std::int64_t max_rows = 0;
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;

  dtype x = dtype::f32;
  dtype weight = dtype::f32;
  dtype bias = dtype::f32;
  dtype out = dtype::f32;

  float input_scale = 1.0F;
  bool has_bias = false;
  bool has_column_scale = false;
  bool accumulate = false;  ///< add to what out holds

  int threads = 0;  ///< host: most threads a call uses; 0 = all of the backend's

  friend bool operator==(matmul_problem const&, matmul_problem const&) = default;
};

/// One line with every field that differs from its default.
[[nodiscard]] MAMBATILE_EXPORT std::string to_string(matmul_problem const& problem);

using matmul_plan = operator_plan<matmul_problem>;
extern template class MAMBATILE_EXPORT operator_plan<matmul_problem>;

/// What the tensors of a call do not tell.
struct matmul_options {
  float input_scale = 1.0F;
  bool accumulate = false;
  int threads = 0;
};

/// The smallest problem that covers one call: sizes, types and presence are read off the tensors.
/// @throws invalid_argument where a needed tensor is absent or has the wrong rank.
[[nodiscard]] MAMBATILE_EXPORT matmul_problem make_problem(matmul_arguments const& arguments,
                                                           matmul_options const& options = {});

}  // namespace v0
}  // namespace mambatile

template <>
struct std::hash<mambatile::matmul_problem> {
  [[nodiscard]] MAMBATILE_EXPORT std::size_t operator()(
      mambatile::matmul_problem const& problem) const noexcept;
};
