#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <mambatile/errors.hpp>
#include <mambatile/model.hpp>
#include <mambatile/safetensors.hpp>

#include "model/model_cache.hpp"

// Format: tensors conv_states (layers, conv_channels, conv_width - 1), oldest column first, and
// ssm_states (layers, nheads, headdim, dstate), whatever layout the backend keeps them in.

namespace mambatile {
inline namespace v0 {
namespace {

constexpr char const* format_name = "mambatile.model_cache";
constexpr char const* format_version = "1";

tensor_view layer_view(void* data, dtype type, std::initializer_list<std::int64_t> shape) {
  auto view = make_view(static_cast<float*>(data), shape);
  view.type = type;
  return view;
}

// Copies elements between host views of one shape and type.
void copy_elements(const_tensor_view const& from, tensor_view const& to, int axis,
                   std::int64_t source, std::int64_t target) {
  auto const element = size_of(from.type);
  if (axis == from.rank) {
    auto const* const in = static_cast<std::byte const*>(from.data);
    auto* const out = static_cast<std::byte*>(to.data);
    std::copy_n(in + static_cast<std::size_t>(source) * element, element,
                out + static_cast<std::size_t>(target) * element);
    return;
  }
  for (std::int64_t i = 0; i < from.extent(axis); ++i) {
    copy_elements(from, to, axis + 1, source + i * from.stride(axis), target + i * to.stride(axis));
  }
}

// One slot of a (slots, ...) view, as the host sees it after a copy to `data`.
tensor_view slot_on_host(tensor_view states, void* data) {
  std::copy(states.extents.begin() + 1, states.extents.end(), states.extents.begin());
  std::copy(states.strides.begin() + 1, states.strides.end(), states.strides.begin());
  --states.rank;
  states.data = data;
  states.where = {};
  return states;
}

}  // namespace

void model_cache::save(std::int64_t slot, std::filesystem::path const& path) const {
  auto const& own = *storage_;
  own.check_slot(slot);
  auto const& config = own.config;
  auto const layers = config.num_layers;
  auto const columns = config.conv_width - 1;
  auto const seen = own.tokens_seen[static_cast<std::size_t>(slot)];
  std::vector<std::byte> conv(static_cast<std::size_t>(layers) * own.conv_slot_bytes());
  std::vector<std::byte> ssm(static_cast<std::size_t>(layers) * own.ssm_slot_bytes());
  std::vector<std::byte> passing(std::max(own.conv_slot_bytes(), own.ssm_slot_bytes()));
  queue const on{.where = own.where};
  auto const unpack = [&](tensor_view const& states, void const* source, std::size_t bytes,
                          tensor_view const& target) {
    own.served_by->copy_to_host(passing.data(), source, bytes, on);
    own.served_by->synchronize(on);
    copy_elements(slot_on_host(states, passing.data()), target, 0, 0, 0);
  };
  // An empty slot's memory holds nothing; its file holds zeros.
  for (std::int64_t layer = 0; seen != 0 && layer < layers; ++layer) {
    auto const at = static_cast<std::size_t>(layer);
    unpack(own.conv_states(layer), own.conv_slot(layer, slot), own.conv_slot_bytes(),
           layer_view(conv.data() + at * own.conv_slot_bytes(), own.io,
                      {config.conv_channels(), columns}));
    unpack(own.ssm_states(layer), own.ssm_slot(layer, slot), own.ssm_slot_bytes(),
           layer_view(ssm.data() + at * own.ssm_slot_bytes(), own.state,
                      {config.nheads, config.headdim, config.dstate}));
  }
  safetensors_writer writer;
  writer.add("conv_states", to_safetensors_type(own.io), {layers, config.conv_channels(), columns},
             conv);
  writer.add("ssm_states", to_safetensors_type(own.state),
             {layers, config.nheads, config.headdim, config.dstate}, ssm);
  writer.set_metadata("format", format_name);
  writer.set_metadata("version", format_version);
  writer.set_metadata("tokens_seen", fmt::format("{}", seen));
  writer.write(path);
}

void model_cache::load(std::int64_t slot, std::filesystem::path const& path) {
  auto const& own = *storage_;
  own.check_slot(slot);
  auto const& config = own.config;
  auto const layers = config.num_layers;
  safetensors_file const file(path);
  auto const metadata = [&](char const* key) {
    auto const found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  if (metadata("format") != format_name || metadata("version") != format_version) {
    throw file_error(fmt::format("{}: is \"{}\" version \"{}\"; expected \"{}\" version \"{}\"",
                                 file.name(), metadata("format"), metadata("version"), format_name,
                                 format_version));
  }
  auto const seen_text = metadata("tokens_seen");
  std::int64_t seen = -1;
  auto const* const seen_end = seen_text.data() + seen_text.size();
  auto const [rest, problem] = std::from_chars(seen_text.data(), seen_end, seen);
  if (problem != std::errc() || rest != seen_end || seen < 0) {
    throw file_error(
        fmt::format("{}: tokens_seen = \"{}\" is not a number of tokens", file.name(), seen_text));
  }
  struct expected {
    char const* name;
    dtype type;
    std::vector<std::int64_t> shape;
  };
  for (auto const& each :
       {expected{"conv_states", own.io, {layers, config.conv_channels(), config.conv_width - 1}},
        expected{
            "ssm_states", own.state, {layers, config.nheads, config.headdim, config.dstate}}}) {
    auto const& tensor = file.at(each.name);
    if (tensor.type != to_safetensors_type(each.type) || tensor.shape != each.shape) {
      throw file_error(
          fmt::format("{}: {} has type {} and shape ({}); this model's states have "
                      "type {} and shape ({})",
                      file.name(), each.name, to_string(tensor.type), fmt::join(tensor.shape, ", "),
                      to_string(to_safetensors_type(each.type)), fmt::join(each.shape, ", ")));
    }
  }
  std::vector<std::byte> packed_state(std::max(own.conv_slot_bytes(), own.ssm_slot_bytes()));
  std::vector<std::byte> passing(packed_state.size());
  queue const on{.where = own.where};
  auto const pack = [&](std::span<std::byte const> bytes, std::int64_t layer, std::size_t count,
                        tensor_view const& source, tensor_view const& states, void* target) {
    std::copy_n(
        bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(layer) * count), count,
        packed_state.begin());
    copy_elements(source, slot_on_host(states, passing.data()), 0, 0, 0);
    own.served_by->copy_to_device(target, passing.data(), count, on);
    own.served_by->synchronize(on);
  };
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    pack(file.at("conv_states").bytes, layer, own.conv_slot_bytes(),
         layer_view(packed_state.data(), own.io, {config.conv_channels(), config.conv_width - 1}),
         own.conv_states(layer), own.conv_slot(layer, slot));
    pack(file.at("ssm_states").bytes, layer, own.ssm_slot_bytes(),
         layer_view(packed_state.data(), own.state, {config.nheads, config.headdim, config.dstate}),
         own.ssm_states(layer), own.ssm_slot(layer, slot));
  }
  storage_->tokens_seen[static_cast<std::size_t>(slot)] = seen;
}

}  // namespace v0
}  // namespace mambatile
