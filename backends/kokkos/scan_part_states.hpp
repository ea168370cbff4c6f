#pragma once

#include <cstdint>

#include "scan_call.hpp"

// Where the states of a part's heads are while the pieces go by.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// (dstate, headdim) rows of one panel.
struct state_rows {
  float* data;
  std::int64_t stride;
};

/// A state starts out zero, or in its tensor, is kept in panels between pieces, and ends in its
/// tensor. Where a tensor holds f32 with headdim innermost, the first and the last piece work on it
/// directly, and nothing is copied.
class part_states {
 public:
  part_states(scan_call const& call, scan_row const& row, scan_part const& part,
              scan_scratch const& scratch) noexcept;

  /// All zero, and not in memory.
  [[nodiscard]] bool is_zero() const noexcept { return place_ == place::nowhere; }
  void reset() noexcept { place_ = place::nowhere; }
  /// Whether somebody wants the states behind the row.
  [[nodiscard]] bool is_wanted() const noexcept { return target_row_ >= 0; }

  /// The next piece leaves its states in panels, or, when nothing follows, in their tensor.
  void begin_piece(bool is_last) noexcept { writes_tensor_ = is_last && is_target_direct_; }
  /// The piece reads its states from their tensor and writes them to theirs.
  [[nodiscard]] bool is_in_place() const noexcept {
    return place_ == place::source && writes_tensor_;
  }
  /// The piece has written all states.
  void end_piece() noexcept { place_ = writes_tensor_ ? place::target : place::panels; }

  /// Rows of a head's panel that starts at `column`, before the piece; not for zero states.
  [[nodiscard]] state_rows source(std::int64_t head, std::int64_t column) const noexcept;
  /// After the piece.
  [[nodiscard]] state_rows target(std::int64_t head, std::int64_t column) const noexcept;

  /// Puts the states, wherever they are, into the panels.
  void materialise() noexcept;
  void store_snapshot(std::int64_t index) noexcept;
  void store_final() noexcept;

 private:
  enum class place { nowhere, source, panels, target };

  [[nodiscard]] state_rows panel(std::int64_t head, std::int64_t column) const noexcept;
  [[nodiscard]] state_rows direct(const_tensor_view const& view, std::int64_t row,
                                  std::int64_t head, std::int64_t column) const noexcept;
  [[nodiscard]] bool is_direct(const_tensor_view const& view) const noexcept;
  [[nodiscard]] state_matrix matrix(const_tensor_view const& view,
                                    std::int64_t offset) const noexcept;

  scan_problem const& problem_;
  scan_arguments const& arguments_;
  scan_row const& row_;
  scan_part const& part_;
  float* panels_;
  std::int64_t elements_;  ///< of one head's panels
  std::int64_t source_row_;
  std::int64_t target_row_;
  bool is_target_direct_;
  bool writes_tensor_ = false;
  place place_ = place::nowhere;
};

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
