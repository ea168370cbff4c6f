#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include <mambatile/errors.hpp>
#include <mambatile/safetensors.hpp>

#include "fuzz/safetensors_fuzz.hpp"

// The one thing that may come of any bytes is a file that can be read throughout, or a file_error.

namespace mambatile::testing {
namespace {

unsigned sum_of(std::span<std::byte const> bytes) {
  unsigned sum = 0;
  for (auto byte : bytes) sum += std::to_integer<unsigned>(byte);
  return sum;
}

// Copies a small tensor into every type; the reader may refuse, no more.
void copy_into_every_type(safetensors_file const& file, safetensors_tensor const& tensor) {
  constexpr std::int64_t largest = 4096;
  if (tensor.size() > largest || tensor.shape.size() > static_cast<std::size_t>(max_rank)) return;
  std::vector<float> memory(static_cast<std::size_t>(tensor.size()) + 1);
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16, dtype::i32}) {
    tensor_view view;
    view.data = memory.data();
    view.type = type;
    view.rank = tensor.shape.empty() ? 1 : static_cast<int>(tensor.shape.size());
    view.extents[0] = view.strides[0] = 1;
    std::int64_t stride = 1;
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
      view.extents[axis] = tensor.shape[axis];
      view.strides[axis] = stride;
      stride *= tensor.shape[axis];
    }
    try {
      file.copy_to(tensor.name, view);
    } catch (file_error const&) {
    }
  }
}

}  // namespace

bool exercise_safetensors(std::span<std::byte const> bytes) {
  try {
    auto const file = safetensors_file::from_bytes(bytes, "fuzz");
    std::size_t covered = 0;
    unsigned volatile sink = 0;
    for (auto const& tensor : file.tensors()) {
      sink = sink + sum_of(tensor.bytes);
      covered += tensor.bytes.size();
      if (file.find(tensor.name) != &tensor) std::abort();
      copy_into_every_type(file, tensor);
    }
    if (covered > bytes.size()) std::abort();
    return true;
  } catch (file_error const&) {
    return false;
  }
}

}  // namespace mambatile::testing
