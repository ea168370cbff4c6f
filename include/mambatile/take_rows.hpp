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
/// take_rows: out[i] = source[index[i]], converted to the type of out: embeddings, and the rows
/// whose logits are wanted.

namespace mambatile {
inline namespace v0 {

/// The tensors of one call. Row strides are free; the last axis of source and out needs stride 1.
/// out shares no element with another tensor.
struct take_rows_arguments {
  const_tensor_view source = {};  ///< (source rows, row_length)
  const_tensor_view index = {};   ///< (rows), i32, each within [0, source rows)
  tensor_view out = {};           ///< (rows, row_length)
};

/// What a plan depends on. max_rows is a capacity: one plan serves every smaller call.
struct take_rows_problem {
  using arguments_type = take_rows_arguments;
  static constexpr std::string_view operator_name = "take_rows";

  std::int64_t max_rows = 0;
  std::int64_t row_length = 0;
  dtype source = dtype::f32;
  dtype out = dtype::f32;
  int threads = 0;  ///< host: most threads a call uses; 0 = all of the backend's

  friend bool operator==(take_rows_problem const&, take_rows_problem const&) = default;
};

/// One line with every field that differs from its default.
[[nodiscard]] MAMBATILE_EXPORT std::string to_string(take_rows_problem const& problem);

using take_rows_plan = operator_plan<take_rows_problem>;
extern template class MAMBATILE_EXPORT operator_plan<take_rows_problem>;

/// The smallest problem that covers one call.
/// @throws invalid_argument where a tensor is absent or has the wrong rank.
[[nodiscard]] MAMBATILE_EXPORT take_rows_problem make_problem(take_rows_arguments const& arguments,
                                                              int threads = 0);

}  // namespace v0
}  // namespace mambatile

template <>
struct std::hash<mambatile::take_rows_problem> {
  [[nodiscard]] MAMBATILE_EXPORT std::size_t operator()(
      mambatile::take_rows_problem const& problem) const noexcept;
};
