#pragma once

#include <algorithm>
#include <cstdint>

#include "shares.hpp"
#include "tuning_scan.hpp"

// How a sequence is cut into pieces, and how all pieces are spread over threads. Pure functions of
// sizes. A sequence's pieces depend on its own length and start only, so that its bits do not
// depend on its neighbours or on the number of threads.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

struct scan_rule {
  std::int64_t chunk;         ///< tokens of a chunk
  std::int64_t single_chunk;  ///< up to here a sequence from a zero state is one chunk
  std::int64_t sequential;    ///< up to here a piece goes token by token
};

/// The rule of a plan; `hint` is the problem's chunk_size, 0 for none.
[[nodiscard]] constexpr scan_rule choose_scan_rule(scan_tuning const& tuning, int hint) noexcept {
  if (hint == 0) return {tuning.chunk, tuning.single_chunk, tuning.sequential};
  std::int64_t const chunk = std::min(hint, largest_chunk);
  return {chunk, chunk, tuning.sequential};
}

/// Tokens of the chunks that a run of `length` tokens is cut into. From a zero state the first
/// chunk needs no product with the state, which makes a longer one pay; otherwise the smallest that
/// hides the state's traffic is best.
[[nodiscard]] constexpr std::int64_t chunk_of_run(scan_rule const& rule, std::int64_t length,
                                                  bool from_zero) noexcept {
  if (from_zero && length <= rule.single_chunk) return std::max<std::int64_t>(length, 1);
  // Even chunks, rather than full ones and a rest.
  std::int64_t const chunks = (length + rule.chunk - 1) / rule.chunk;
  return chunks == 0 ? 1 : (length + chunks - 1) / chunks;
}

/// Longest piece that calls within these capacities can have.
[[nodiscard]] constexpr std::int64_t longest_piece(scan_rule const& rule,
                                                   std::int64_t max_seqlen) noexcept {
  return std::clamp<std::int64_t>(max_seqlen, 1, std::max(rule.chunk, rule.single_chunk));
}

/// A stretch of one row that is worked on at once.
struct scan_piece {
  std::int64_t begin;   ///< first token, counted from the row's first
  std::int64_t count;   ///< tokens
  bool padding;         ///< tokens of no sequence: out = 0, the state stays
  bool resets;          ///< another sequence starts: its state is zero
  bool snapshot_after;  ///< intermediate states are due behind it
};

/// Walks over the pieces of one row (or packed sequence).
class scan_walker {
 public:
  /// `seq_idx` is the row's first entry or null.
  constexpr scan_walker(scan_rule const& rule, std::int64_t length, std::int64_t every,
                        std::int32_t const* seq_idx, std::int64_t seq_idx_stride,
                        bool from_zero) noexcept
      : rule_(rule),
        length_(length),
        every_(every),
        seq_idx_(seq_idx),
        stride_(seq_idx_stride),
        from_zero_(from_zero) {}

  /// False at the end of the row.
  constexpr bool next(scan_piece& piece) noexcept {
    if (position_ == length_) return false;
    piece.resets = false;
    if (position_ == run_end_) piece.resets = start_run();
    std::int64_t end = padding_ ? run_end_ : std::min(position_ + chunk_, run_end_);
    if (every_ != 0) end = std::min(end, (position_ / every_ + 1) * every_);
    piece.begin = position_;
    piece.count = end - position_;
    piece.padding = padding_;
    piece.snapshot_after = every_ != 0 && end % every_ == 0;
    position_ = end;
    return true;
  }

  /// Sequences that had a token so far.
  [[nodiscard]] constexpr std::int64_t sequences() const noexcept { return sequences_; }

 private:
  [[nodiscard]] constexpr std::int32_t id_at(std::int64_t token) const noexcept {
    return seq_idx_ == nullptr ? 0 : seq_idx_[token * stride_];
  }

  constexpr bool start_run() noexcept {
    auto const id = id_at(position_);
    run_end_ = length_;
    if (seq_idx_ != nullptr) {
      run_end_ = position_ + 1;
      while (run_end_ < length_ && id_at(run_end_) == id) ++run_end_;
    }
    padding_ = id < 0;
    if (padding_) return false;
    bool const is_new = sequences_ == 0 || id != carried_;
    bool const resets = is_new && sequences_ != 0;
    if (is_new) ++sequences_;
    carried_ = id;
    chunk_ = chunk_of_run(rule_, run_end_ - position_, resets || from_zero_);
    from_zero_ = false;
    return resets;
  }

  scan_rule rule_;
  std::int64_t length_;
  std::int64_t every_;
  std::int32_t const* seq_idx_;
  std::int64_t stride_;
  bool from_zero_;
  bool padding_ = false;
  std::int64_t position_ = 0;
  std::int64_t run_end_ = 0;
  std::int64_t chunk_ = 1;
  std::int32_t carried_ = 0;
  std::int64_t sequences_ = 0;
};

/// Work of a row, in token-units of one of its parts.
[[nodiscard]] constexpr std::int64_t work_of_row(std::int64_t length) noexcept {
  return length + sequence_overhead;
}

/// Whether heads are split along headdim: only where whole heads would leave threads idle or badly
/// balanced.
[[nodiscard]] constexpr bool splits_heads(std::int64_t rows, std::int64_t nheads,
                                          int shares) noexcept {
  return shares > 1 && rows * nheads < std::int64_t{8} * shares;
}

/// Parts [begin, end) of a row whose `parts` parts of `each` work start at `offset`: those that
/// start inside the range.
[[nodiscard]] constexpr work_range parts_in_range(work_range const& range, std::int64_t offset,
                                                  std::int64_t each, std::int64_t parts) noexcept {
  auto const first_at = [&](std::int64_t position) {
    return std::clamp<std::int64_t>((position - offset + each - 1) / each, 0, parts);
  };
  return {range.begin <= offset ? 0 : first_at(range.begin),
          range.end <= offset ? 0 : first_at(range.end)};
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
