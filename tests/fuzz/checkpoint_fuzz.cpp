#include "fuzz/checkpoint_fuzz.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include <mambatile/checkpoint.hpp>
#include <mambatile/errors.hpp>

namespace mambatile::testing {
namespace {

constexpr std::array names = {"config.json", "model.safetensors", "model.safetensors.index.json",
                              "model-1.safetensors", "model-2.safetensors"};

void write_files(std::span<std::byte const> bytes, std::filesystem::path const& folder) {
  std::error_code ignored;
  for (auto const* name : names) std::filesystem::remove(folder / name, ignored);
  constexpr std::size_t prefix = 3;
  while (bytes.size() >= prefix) {
    auto const which = std::to_integer<std::size_t>(bytes[0]) % names.size();
    auto const length =
        std::to_integer<std::size_t>(bytes[1]) + 256 * std::to_integer<std::size_t>(bytes[2]);
    bytes = bytes.subspan(prefix);
    auto const content = bytes.first(std::min(length, bytes.size()));
    std::ofstream file(folder / names[which], std::ios::binary);
    file.write(reinterpret_cast<char const*>(content.data()),
               static_cast<std::streamsize>(content.size()));
    bytes = bytes.subspan(content.size());
  }
}

unsigned sum_of(const_tensor_view const& view) {
  unsigned sum = 0;
  auto const* const data = static_cast<unsigned char const*>(view.data);
  auto const bytes = view.size() * static_cast<std::int64_t>(size_of(view.type));
  for (std::int64_t i = 0; i < bytes; ++i) sum += data[i];
  return sum;
}

}  // namespace

bool exercise_checkpoint(std::span<std::byte const> bytes, std::filesystem::path const& folder) {
  write_files(bytes, folder);
  try {
    auto const stored = checkpoint::open(folder, [](std::string_view remark) {
      if (remark.empty()) std::abort();
    });
    auto const& config = stored.config();
    auto const& weights = stored.weights();
    if (weights.layers.size() != static_cast<std::size_t>(config.num_layers)) std::abort();
    if (stored.file_bytes() <= 0 || !is_floating(stored.weight_type())) std::abort();
    unsigned volatile sink =
        sum_of(weights.embedding) + sum_of(weights.final_norm) + sum_of(weights.head);
    for (auto const& layer : weights.layers) {
      for (auto const& view : {layer.input_norm, layer.input_projection, layer.input_bias,
                               layer.conv_weight, layer.conv_bias, layer.dt_bias, layer.A, layer.D,
                               layer.gated_norm, layer.output_projection, layer.output_bias}) {
        sink = sink + sum_of(view);
      }
    }
    return true;
  } catch (file_error const&) {
    return false;
  }
}

}  // namespace mambatile::testing
