#include "model/passes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <mambatile/errors.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {

void check_batch(std::span<sequence_tokens const> batch, std::int64_t slots,
                 std::int64_t vocab_size) {
  std::vector<std::int64_t> named;
  named.reserve(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto const& sequence = batch[i];
    if (sequence.slot < 0 || sequence.slot >= slots) {
      throw invalid_argument(fmt::format("model: batch[{}].slot = {}, but the cache has {} slots",
                                         i, sequence.slot, slots));
    }
    named.push_back(sequence.slot);
    for (std::size_t t = 0; t < sequence.ids.size(); ++t) {
      if (sequence.ids[t] < 0 || sequence.ids[t] >= vocab_size) {
        throw invalid_argument(
            fmt::format("model: batch[{}].ids[{}] = {} is outside the vocabulary of {}", i, t,
                        sequence.ids[t], vocab_size));
      }
    }
  }
  std::sort(named.begin(), named.end());
  auto const twice = std::adjacent_find(named.begin(), named.end());
  if (twice != named.end()) {
    throw invalid_argument(fmt::format(
        "model: slot {} is named twice in the batch; give all its tokens at once", *twice));
  }
}

pass_maker::pass_maker(std::span<sequence_tokens const> batch, std::int64_t max_tokens,
                       std::int64_t max_sequences, logits_of wanted) noexcept
    : batch_(batch), max_tokens_(max_tokens), max_sequences_(max_sequences), wanted_(wanted) {}

token_pass const* pass_maker::next(std::span<std::int64_t const> tokens_seen) {
  pass_.ids.clear();
  pass_.cu_seqlens.assign(1, 0);
  pass_.sources.clear();
  pass_.targets.clear();
  pass_.wanted_rows.clear();
  auto const max_tokens = static_cast<std::size_t>(max_tokens_);
  while (sequence_ < batch_.size() && pass_.ids.size() < max_tokens &&
         pass_.targets.size() < static_cast<std::size_t>(max_sequences_)) {
    auto const& sequence = batch_[sequence_];
    auto const rest = sequence.ids.subspan(position_);
    auto const piece = rest.first(std::min(rest.size(), max_tokens - pass_.ids.size()));
    bool const ends = piece.size() == rest.size();
    if (!piece.empty()) {
      auto const slot = static_cast<std::int32_t>(sequence.slot);
      bool const is_new = tokens_seen[static_cast<std::size_t>(sequence.slot)] == 0;
      pass_.sources.push_back(is_new ? -1 : slot);
      pass_.targets.push_back(slot);
      for (auto const id : piece) {
        if (wanted_ == logits_of::all_tokens) {
          pass_.wanted_rows.push_back(static_cast<std::int32_t>(pass_.ids.size()));
        }
        pass_.ids.push_back(id);
      }
      auto const end = static_cast<std::int32_t>(pass_.ids.size());
      pass_.cu_seqlens.push_back(end);
      if (ends && wanted_ == logits_of::last_tokens) pass_.wanted_rows.push_back(end - 1);
    }
    position_ = ends ? 0 : position_ + piece.size();
    if (ends) ++sequence_;
  }
  return pass_.ids.empty() ? nullptr : &pass_;
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
