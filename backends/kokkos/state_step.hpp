#pragma once

#include <cstdint>

#include <mambatile/dtype.hpp>

// One token of one head over (a part of) its state: read a state once, write it once, in one
// stream. Two forms, for the two orders that a state may be stored in. Bits of a channel do not
// depend on the part it is done in.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// Order of storage of a state that both forms leave as it is: lines of `length` elements with
/// stride 1, `stride` apart.
struct step_lines {
  void const* from;
  dtype from_type;
  std::int64_t from_stride;
  void* to;  ///< null = read only; may be `from`
  dtype to_type;
  std::int64_t to_stride;
  bool prefetch;
};

/// What one token does to one head: state = decay state + dx (outer) b, y = state c.
struct step_token {
  float decay;
  float const* b;   ///< dstate
  float const* c;   ///< dstate
  float const* dx;  ///< delta x, a channel each
  float* y;         ///< a channel each; room for whole packs
};

/// headdim innermost: a line holds the `channels` of one state element.
void step_by_channel(step_lines const& lines, step_token const& token, std::int64_t channels,
                     std::int64_t dstate) noexcept;

/// dstate innermost: a line holds the state elements of one channel.
void step_by_element(step_lines const& lines, step_token const& token, std::int64_t channels,
                     std::int64_t dstate) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
