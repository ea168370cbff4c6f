#include <array>
#include <concepts>
#include <cstring>
#include <type_traits>
#include <utility>

#include <mambatile/errors.hpp>

#include "rounding.hpp"
#include "safetensors/header.hpp"

// Copies out of a file, converting element types. Elements are read with memcpy: data may lie at
// any address.

namespace mambatile {
namespace {

using safetensors::quote;
using safetensors::shape_text;

template <class Stored>
Stored read(std::byte const* source) noexcept {
  Stored value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

template <class Target, class Stored>
Target convert_floating(Stored value) noexcept {
  if constexpr (std::same_as<Stored, double>) {
    return detail::round_to<Target>(value);
  } else {
    return Target(static_cast<float>(value));
  }
}

// Calls `row(source, target)` for each run along the last axis; targets are element offsets.
template <class Row>
void for_each_row(tensor_view const& view, std::size_t row_bytes, std::byte const* source,
                  Row const& row) {
  int const outer = view.rank - 1;
  std::array<std::int64_t, max_rank> index = {};
  std::int64_t target = 0;
  while (true) {
    row(source, target);
    source += row_bytes;
    int axis = outer - 1;
    for (; axis >= 0; --axis) {
      auto const place = static_cast<std::size_t>(axis);
      target += view.strides[place];
      if (++index[place] < view.extents[place]) break;
      target -= view.strides[place] * view.extents[place];
      index[place] = 0;
    }
    if (axis < 0) return;
  }
}

struct copy_job {
  safetensors_tensor const& tensor;
  tensor_view const& target;
  std::string const& file;

  [[noreturn]] void fail(std::string const& problem) const {
    throw file_error(file + ": tensor " + quote(tensor.name) + " " + problem);
  }

  template <class Stored, class Target, class Convert>
  void run(Convert const& convert) const {
    auto const length = target.extents[static_cast<std::size_t>(target.rank - 1)];
    auto const stride = target.strides[static_cast<std::size_t>(target.rank - 1)];
    auto const row_bytes = static_cast<std::size_t>(length) * sizeof(Stored);
    auto* const base = static_cast<Target*>(target.data);
    for_each_row(target, row_bytes, tensor.bytes.data(),
                 [&](std::byte const* source, std::int64_t offset) {
                   Target* const row = base + offset;
                   if constexpr (std::same_as<Stored, Target>) {
                     if (stride == 1) {
                       std::memcpy(row, source, row_bytes);
                       return;
                     }
                   }
                   for (std::int64_t index = 0; index < length; ++index) {
                     row[index * stride] =
                         convert(read<Stored>(source + index * std::int64_t{sizeof(Stored)}));
                   }
                 });
  }

  template <class Stored>
  void floating() const {
    auto const as = [&]<class Target>(Target) {
      run<Stored, Target>([](Stored value) { return convert_floating<Target>(value); });
    };
    switch (target.type) {
      case dtype::f32: return as(float{});
      case dtype::bf16: return as(bfloat16{});
      case dtype::f16: return as(float16{});
      case dtype::i32: break;
    }
    no_conversion();
  }

  template <std::integral Stored>
  void integral() const {
    if (target.type != dtype::i32) no_conversion();
    run<Stored, std::int32_t>([&](Stored value) {
      if (!std::in_range<std::int32_t>(value)) {
        fail("holds " + std::to_string(value) + ", which is beyond i32");
      }
      return static_cast<std::int32_t>(value);
    });
  }

  [[noreturn]] void no_conversion() const {
    fail("has type " + std::string(to_string(tensor.type)) + ", which is not read as " +
         std::string(to_string(target.type)));
  }

  void dispatch() const {
    switch (tensor.type) {
      case safetensors_type::f64: return floating<double>();
      case safetensors_type::f32: return floating<float>();
      case safetensors_type::bf16: return floating<bfloat16>();
      case safetensors_type::f16: return floating<float16>();
      case safetensors_type::i64: return integral<std::int64_t>();
      case safetensors_type::u64: return integral<std::uint64_t>();
      case safetensors_type::i32: return integral<std::int32_t>();
      case safetensors_type::u32: return integral<std::uint32_t>();
      case safetensors_type::i16: return integral<std::int16_t>();
      case safetensors_type::u16: return integral<std::uint16_t>();
      case safetensors_type::i8: return integral<std::int8_t>();
      case safetensors_type::u8:
      case safetensors_type::boolean: return integral<std::uint8_t>();
      default: no_conversion();
    }
  }
};

bool same_shape(std::span<std::int64_t const> shape, tensor_view const& view) {
  if (shape.empty()) return view.rank == 1 && view.extents[0] == 1;
  if (shape.size() != static_cast<std::size_t>(view.rank)) return false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != view.extents[axis]) return false;
  }
  return true;
}

}  // namespace

inline namespace v0 {

void safetensors_file::copy_to(std::string_view tensor, tensor_view const& destination) const {
  auto const& entry = at(tensor);
  if (destination.where.kind != device_kind::host) {
    throw invalid_argument("safetensors_file::copy_to: destination of tensor " + quote(tensor) +
                           " is on " + to_string(destination.where) + ", not on the host");
  }
  copy_job const job{entry, destination, name()};
  if (!same_shape(entry.shape, destination)) {
    job.fail("has shape " + shape_text(entry.shape) + ", but " + shape_string(destination) +
             " was expected");
  }
  if (destination.size() == 0) return;
  if (destination.data == nullptr) {
    throw invalid_argument("safetensors_file::copy_to: destination of tensor " + quote(tensor) +
                           " is null");
  }
  job.dispatch();
}

}  // namespace v0
}  // namespace mambatile
