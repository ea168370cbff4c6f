#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <mambatile/model.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {

/// Throws invalid_argument for a slot out of range or named twice, or an id outside the vocabulary.
void check_batch(std::span<sequence_tokens const> batch, std::int64_t slots,
                 std::int64_t vocab_size);

/// Tokens that go through the layers together: pieces of sequences, one after the other.
struct token_pass {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> cu_seqlens;  ///< of the pieces
  std::vector<std::int32_t> sources;     ///< slot of each piece, -1 = a new sequence
  std::vector<std::int32_t> targets;
  std::vector<std::int32_t> wanted_rows;  ///< tokens of this pass whose logits are wanted

  /// Each piece is one token.
  [[nodiscard]] bool is_decode() const noexcept { return ids.size() == targets.size(); }
};

/// Cuts a batch into passes within the model's capacities.
class pass_maker {
 public:
  pass_maker(std::span<sequence_tokens const> batch, std::int64_t max_tokens,
             std::int64_t max_sequences, logits_of wanted) noexcept;

  /// The next pass, valid until the one after; null after the last. `tokens_seen` tells which slots
  /// are empty.
  [[nodiscard]] token_pass const* next(std::span<std::int64_t const> tokens_seen);

 private:
  std::span<sequence_tokens const> batch_;
  std::int64_t max_tokens_;
  std::int64_t max_sequences_;
  logits_of wanted_;
  std::size_t sequence_ = 0;
  std::size_t position_ = 0;
  token_pass pass_;
};

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
