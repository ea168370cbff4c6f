#include "model/model_cache.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include <mambatile/errors.hpp>
#include <mambatile/model.hpp>

namespace mambatile {
inline namespace v0 {

std::int64_t model_cache::storage::conv_elements() const noexcept {
  return config.conv_channels() * (config.conv_width - 1);
}

std::int64_t model_cache::storage::ssm_elements() const noexcept {
  return config.inner_size() * config.dstate;
}

std::size_t model_cache::storage::conv_slot_bytes() const noexcept {
  return static_cast<std::size_t>(conv_elements()) * size_of(io);
}

std::size_t model_cache::storage::ssm_slot_bytes() const noexcept {
  return static_cast<std::size_t>(ssm_elements()) * size_of(state);
}

void* model_cache::storage::conv_slot(std::int64_t layer, std::int64_t slot) const noexcept {
  auto const index = static_cast<std::size_t>(layer * slots + slot);
  return conv.data() == nullptr ? nullptr
                                : static_cast<char*>(conv.data()) + index * conv_slot_bytes();
}

void* model_cache::storage::ssm_slot(std::int64_t layer, std::int64_t slot) const noexcept {
  auto const index = static_cast<std::size_t>(layer * slots + slot);
  return ssm.data() == nullptr ? nullptr
                               : static_cast<char*>(ssm.data()) + index * ssm_slot_bytes();
}

tensor_view model_cache::storage::conv_states(std::int64_t layer) const noexcept {
  auto const channels = config.conv_channels();
  auto const columns = config.conv_width - 1;
  tensor_view view;
  view.data = conv_slot(layer, 0);
  view.type = io;
  view.where = where;
  view.rank = 3;
  view.extents = {slots, channels, columns};
  // Channels innermost: the convolution runs along them.
  view.strides = {channels * columns, 1, channels};
  return view;
}

tensor_view model_cache::storage::ssm_states(std::int64_t layer) const noexcept {
  auto view = make_state_view(static_cast<float*>(nullptr), slots, config.nheads, config.headdim,
                              config.dstate, layout, where);
  view.data = ssm_slot(layer, 0);
  view.type = state;
  return view;
}

void model_cache::storage::check_slot(std::int64_t slot) const {
  if (slot < 0 || slot >= slots) {
    throw invalid_argument(
        fmt::format("model_cache: slot = {}, but the cache has {} slots", slot, slots));
  }
}

model_cache::model_cache(model const& of, std::int64_t slots)
    : storage_(std::make_unique<storage>()) {
  if (slots < 0) {
    throw invalid_argument(
        fmt::format("model_cache: slots = {}, but it must not be negative", slots));
  }
  auto& own = *storage_;
  own.served_by = &of.served_by();
  own.where = of.where();
  own.config = of.config();
  own.io = of.options().io;
  own.state = of.options().state;
  own.layout = of.served_by().preferred_state_layout();
  own.slots = slots;
  own.tokens_seen.assign(static_cast<std::size_t>(slots), 0);
  auto const states = static_cast<std::size_t>(own.config.num_layers * slots);
  own.conv = own.served_by->allocate(own.where, states * own.conv_slot_bytes());
  own.ssm = own.served_by->allocate(own.where, states * own.ssm_slot_bytes());
}

model_cache::model_cache(model_cache&&) noexcept = default;
model_cache& model_cache::operator=(model_cache&&) noexcept = default;
model_cache::~model_cache() = default;

std::int64_t model_cache::slots() const noexcept { return storage_->slots; }
std::size_t model_cache::bytes() const noexcept {
  return storage_->conv.bytes() + storage_->ssm.bytes();
}

std::int64_t model_cache::tokens_seen(std::int64_t slot) const {
  storage_->check_slot(slot);
  return storage_->tokens_seen[static_cast<std::size_t>(slot)];
}

void model_cache::reset(std::int64_t slot) {
  storage_->check_slot(slot);
  storage_->tokens_seen[static_cast<std::size_t>(slot)] = 0;
}

void model_cache::copy(std::int64_t from, std::int64_t to) {
  auto const& own = *storage_;
  own.check_slot(from);
  own.check_slot(to);
  if (from == to) return;
  auto const seen = own.tokens_seen[static_cast<std::size_t>(from)];
  if (seen != 0) {
    queue const on{.where = own.where};
    std::vector<std::byte> passing(std::max(own.conv_slot_bytes(), own.ssm_slot_bytes()));
    auto const move = [&](void* target, void const* source, std::size_t bytes) {
      own.served_by->copy_to_host(passing.data(), source, bytes, on);
      own.served_by->synchronize(on);
      own.served_by->copy_to_device(target, passing.data(), bytes, on);
      own.served_by->synchronize(on);
    };
    for (std::int64_t layer = 0; layer < own.config.num_layers; ++layer) {
      move(own.conv_slot(layer, to), own.conv_slot(layer, from), own.conv_slot_bytes());
      move(own.ssm_slot(layer, to), own.ssm_slot(layer, from), own.ssm_slot_bytes());
    }
  }
  storage_->tokens_seen[static_cast<std::size_t>(to)] = seen;
}

}  // namespace v0
}  // namespace mambatile
