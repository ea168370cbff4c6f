#include "argument_checks.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/errors.hpp>

#include "enumerator_text.hpp"
#include "overlap.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

std::string names_of(std::span<expected_axis const> shape) {
  std::string text = "(";
  for (auto const& axis : shape) text += fmt::format("{}{}", text == "(" ? "" : ", ", axis.name);
  return text + ")";
}

std::string extents_of(std::span<expected_axis const> shape) {
  std::string text = "(";
  for (auto const& axis : shape) text += fmt::format("{}{}", text == "(" ? "" : ", ", axis.extent);
  return text + ")";
}

// Nothing when bytes of that many elements are beyond 64 bits.
std::optional<std::int64_t> element_count(const_tensor_view const& view) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(view.type));
  for (int axis = 0; axis < view.rank; ++axis) {
    if (view.extent(axis) == 0) return 0;
  }
  for (int axis = 0; axis < view.rank; ++axis) {
    if (__builtin_mul_overflow(bytes, view.extent(axis), &bytes)) return std::nullopt;
  }
  return bytes / static_cast<std::int64_t>(size_of(view.type));
}

std::string strides_of(const_tensor_view const& view) {
  std::string text = "(";
  for (int axis = 0; axis < view.rank; ++axis) {
    text += fmt::format("{}{}", axis == 0 ? "" : ", ", view.stride(axis));
  }
  return text + ")";
}

// Whether the addresses of all elements, in bytes, are numbers from 0 to 2^63 - 1: then no distance
// between two elements, of this tensor or of two, overflows.
bool fits_into_offsets(const_tensor_view const& view) {
  auto const element = static_cast<std::int64_t>(size_of(view.type));
  auto const start = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(view.data));
  std::int64_t lowest = start;
  std::int64_t end = 0;
  if (start < 0 || __builtin_add_overflow(start, element, &end)) return false;
  for (int axis = 0; axis < view.rank; ++axis) {
    if (view.extent(axis) <= 1) continue;
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(view.stride(axis), element, &reach) ||
        __builtin_mul_overflow(reach, view.extent(axis) - 1, &reach)) {
      return false;
    }
    auto& moved = reach < 0 ? lowest : end;
    if (__builtin_add_overflow(moved, reach, &moved)) return false;
  }
  return lowest >= 0;
}

}  // namespace

void argument_checker::fail(std::string const& what) const {
  throw invalid_argument(fmt::format("{}: {}", operator_name_, what));
}

void argument_checker::fail_unsupported(std::string const& what) const {
  throw unsupported(fmt::format("{}: {}", operator_name_, what));
}

void argument_checker::fail_presence(named_tensor const& tensor, std::string const& rule) const {
  fail(tensor.view ? fmt::format("{} was given, but the problem has {}", tensor.name, rule)
                   : fmt::format("{} is absent, but the problem has {}", tensor.name, rule));
}

void argument_checker::rank(named_tensor const& tensor, int rank, std::string_view axes) const {
  if (!tensor.view) fail(fmt::format("{} is absent; expected {}", tensor.name, axes));
  if (tensor.view.rank != rank) {
    fail(fmt::format("{} has shape {} of rank {}; expected {} of rank {}", tensor.name,
                     shape_string(tensor.view), tensor.view.rank, axes, rank));
  }
}

void argument_checker::tensor(named_tensor const& tensor, dtype type,
                              std::initializer_list<expected_axis> shape) const {
  this->tensor(tensor, type, std::span<expected_axis const>(shape.begin(), shape.size()));
}

void argument_checker::tensor(named_tensor const& tensor, dtype type,
                              std::span<expected_axis const> shape) const {
  auto const& view = tensor.view;
  if (view.rank != static_cast<int>(shape.size())) {
    rank(tensor, static_cast<int>(shape.size()), names_of(shape));
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (view.extents[axis] < 0) {
      fail(fmt::format("{} has shape {}; extents must not be negative", tensor.name,
                       shape_string(view)));
    }
    if (view.extents[axis] != shape[axis].extent) {
      fail(fmt::format("{} has shape {}; expected {} = {}", tensor.name, shape_string(view),
                       names_of(shape), extents_of(shape)));
    }
  }
  if (view.type != type) {
    fail(fmt::format("{} has type {}; expected {}", tensor.name, enumerator_text(view.type),
                     to_string(type)));
  }
  if (!element_count(view)) {
    fail(fmt::format("{} has shape {}; that many elements do not fit into 64-bit offsets",
                     tensor.name, shape_string(view)));
  }
  if (view.where != where_) {
    fail(fmt::format("{} is on device {}; expected {}, where the plan runs", tensor.name,
                     to_string(view.where), to_string(where_)));
  }
  if (view.size() == 0) return;
  if (view.data == nullptr) {
    fail(fmt::format("{} has shape {} but its data is null", tensor.name, shape_string(view)));
  }
  auto const address = reinterpret_cast<std::uintptr_t>(view.data);
  if (address % size_of(view.type) != 0) {
    fail(fmt::format("{} starts at an address that is not a multiple of its element's {} bytes",
                     tensor.name, size_of(view.type)));
  }
  if (!fits_into_offsets(view)) {
    fail(fmt::format("{} has shape {} and strides {}, which span beyond 64-bit offsets",
                     tensor.name, shape_string(view), strides_of(view)));
  }
}

void argument_checker::inner_stride(named_tensor const& tensor) const {
  auto const& view = tensor.view;
  int const last = view.rank - 1;
  if (view.size() == 0 || view.extent(last) == 1 || view.stride(last) == 1) return;
  fail_unsupported(fmt::format("{} has stride {} on its last axis; only stride 1 is supported",
                               tensor.name, view.stride(last)));
}

void argument_checker::capacity(std::string_view extent_name, std::int64_t extent,
                                std::string_view capacity_name, std::int64_t capacity) const {
  if (extent > capacity) {
    fail(fmt::format("{} = {} exceeds the plan's {} = {}", extent_name, extent, capacity_name,
                     capacity));
  }
}

void check_cu_seqlens_tensor(argument_checker const& checker, const_tensor_view const& cu_seqlens,
                             std::int64_t batch, std::int64_t tokens, std::int64_t max_sequences) {
  if (batch != 1) {
    checker.fail(
        fmt::format("x has batch = {}, but packed sequences (cu_seqlens) need batch = 1", batch));
  }
  checker.rank({"cu_seqlens", cu_seqlens}, 1, "(sequences + 1)");
  if (cu_seqlens.extent(0) < 1) {
    checker.fail("cu_seqlens has shape (0); expected (sequences + 1), at least one entry");
  }
  checker.tensor({"cu_seqlens", cu_seqlens}, dtype::i32, {{"sequences + 1", cu_seqlens.extent(0)}});
  checker.capacity("sequences", cu_seqlens.extent(0) - 1, "max_sequences", max_sequences);
  if (tokens > std::numeric_limits<std::int32_t>::max()) {
    checker.fail_unsupported(
        fmt::format("seqlen = {} is more than cu_seqlens, an i32 array, can index", tokens));
  }
}

void argument_checker::distinct_elements(named_tensor const& output) const {
  if (may_overlap_itself(output.view)) {
    fail(
        fmt::format("{} with shape {} and strides {} has elements that overlap each other; "
                    "each element of an output must be its own",
                    output.name, shape_string(output.view), strides_of(output.view)));
  }
}

void argument_checker::disjoint(named_tensor const& output, named_tensor const& other) const {
  if (may_overlap(output.view, other.view)) {
    fail(fmt::format("{} overlaps {}; an output must not share an element with another tensor",
                     output.name, other.name));
  }
}

void argument_checker::disjoint_or_identical(named_tensor const& output,
                                             named_tensor const& other) const {
  if (is_identical(output.view, other.view)) return;
  if (may_overlap(output.view, other.view)) {
    fail(
        fmt::format("{} overlaps {} without being the identical view; update in place, or keep "
                    "them apart",
                    output.name, other.name));
  }
}

void argument_checker::overlaps(std::span<named_tensor const> outputs,
                                std::span<named_tensor const> inputs) const {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    distinct_elements(outputs[i]);
    for (auto const& input : inputs) {
      if (outputs[i].name == "final_states" && input.name == "initial_states") {
        disjoint_or_identical(outputs[i], input);
      } else {
        disjoint(outputs[i], input);
      }
    }
    for (std::size_t j = 0; j < i; ++j) disjoint(outputs[i], outputs[j]);
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
