#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <mambatile/backend.hpp>
#include <mambatile/checkpoint.hpp>
#include <mambatile/mixer.hpp>
#include <mambatile/tensor_view.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {

/// A model's weights where a backend can use them. On the host, projections and embeddings stay
/// where they are; norms, convolutions and biases, small against them, become f32. On a device
/// everything is copied there.
class device_weights {
 public:
  device_weights(model_weights const& stored, backend const& served_by, device where);

  [[nodiscard]] const_tensor_view const& embedding() const noexcept { return embedding_; }
  [[nodiscard]] const_tensor_view const& input_norm(std::size_t layer) const noexcept {
    return input_norms_[layer];
  }
  [[nodiscard]] mixer_weights const& layer(std::size_t layer) const noexcept {
    return layers_[layer];
  }
  [[nodiscard]] const_tensor_view const& final_norm() const noexcept { return final_norm_; }
  /// The head's first rows: rows of a padded vocabulary never reach the caller.
  [[nodiscard]] const_tensor_view head(std::int64_t vocab_size) const noexcept;

 private:
  [[nodiscard]] const_tensor_view place(const_tensor_view const& stored);
  [[nodiscard]] const_tensor_view place_as_f32(const_tensor_view const& stored);

  backend const* served_by_;
  device where_;
  std::deque<buffer> owned_;
  const_tensor_view embedding_;
  const_tensor_view head_;
  const_tensor_view final_norm_;
  std::vector<const_tensor_view> input_norms_;
  std::vector<mixer_weights> layers_;
};

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
