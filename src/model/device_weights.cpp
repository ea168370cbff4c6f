#include "model/device_weights.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <mambatile/dtype.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

template <class Element>
void widen(const_tensor_view const& from, float* to) {
  auto const* const data = static_cast<Element const*>(from.data);
  for (std::int64_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(data[i]);
}

}  // namespace

device_weights::device_weights(model_weights const& stored, backend const& served_by, device where)
    : served_by_(&served_by), where_(where) {
  embedding_ = place(stored.embedding);
  bool const tied = stored.head.data == stored.embedding.data;
  head_ = tied ? embedding_ : place(stored.head);
  final_norm_ = place_as_f32(stored.final_norm);
  for (auto const& layer : stored.layers) {
    input_norms_.push_back(place_as_f32(layer.input_norm));
    mixer_weights weights;
    weights.input_projection = place(layer.input_projection);
    weights.input_bias = place_as_f32(layer.input_bias);
    weights.conv_weight = place_as_f32(layer.conv_weight);
    weights.conv_bias = place_as_f32(layer.conv_bias);
    weights.dt_bias = place(layer.dt_bias);
    weights.A = place(layer.A);
    weights.D = place(layer.D);
    weights.norm_weight = place_as_f32(layer.gated_norm);
    weights.output_projection = place(layer.output_projection);
    weights.output_bias = place_as_f32(layer.output_bias);
    layers_.push_back(weights);
  }
  // What was copied from temporaries must have arrived before they go.
  served_by_->synchronize(queue{.where = where_});
}

const_tensor_view device_weights::head(std::int64_t vocab_size) const noexcept {
  auto view = head_;
  view.extents[0] = vocab_size;
  return view;
}

const_tensor_view device_weights::place(const_tensor_view const& stored) {
  if (!stored || where_ == stored.where) return stored;
  auto const bytes = static_cast<std::size_t>(stored.size()) * size_of(stored.type);
  auto const& memory = owned_.emplace_back(served_by_->allocate(where_, bytes));
  served_by_->copy_to_device(memory.data(), stored.data, bytes, queue{.where = where_});
  auto view = stored;
  view.data = memory.data();
  view.where = where_;
  return view;
}

const_tensor_view device_weights::place_as_f32(const_tensor_view const& stored) {
  if (!stored || stored.type == dtype::f32) return place(stored);
  std::vector<float> values(static_cast<std::size_t>(stored.size()));
  if (stored.type == dtype::bf16) {
    widen<bfloat16>(stored, values.data());
  } else {
    widen<float16>(stored, values.data());
  }
  auto const bytes = values.size() * sizeof(float);
  auto const& memory = owned_.emplace_back(served_by_->allocate(where_, bytes));
  queue const on{.where = where_};
  served_by_->copy_to_device(memory.data(), values.data(), bytes, on);
  served_by_->synchronize(on);
  auto view = stored;
  view.type = dtype::f32;
  view.data = memory.data();
  view.where = where_;
  return view;
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
