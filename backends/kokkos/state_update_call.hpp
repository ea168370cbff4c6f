#pragma once

#include <cstddef>
#include <cstdint>

#include <mambatile/state_update.hpp>

#include "state_copy.hpp"
#include "state_update_forms.hpp"

// One call of state_update as its workers see it.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// What a worker does of a row: channels [first, end) of one head. `first` is a multiple of
/// pack_width.
struct update_part {
  std::int64_t row;
  std::int64_t head;
  std::int64_t first;
  std::int64_t end;
};

/// Scratch of one share.
struct update_scratch {
  float* b;      ///< (token, dstate in packs), of the group that is worked on
  float* c;      ///< likewise
  float* delta;  ///< (token, nheads in packs)
  float* decay;  ///< likewise
  float* x;      ///< headdim in packs, as the following
  float* dx;
  float* y;
  float* skip;
  float* state;  ///< a head's state in f32, where it can't stay in its tensor between tokens
  std::int64_t dstate_stride;
  std::int64_t heads_stride;
};

/// Returns the bytes used; with null memory it only counts.
std::size_t cut_update_scratch(state_update_problem const& problem, void* memory,
                               update_scratch& scratch) noexcept;

/// Does parts of a call one after the other, keeping what neighbouring parts share.
class update_worker {
 public:
  /// `arguments` have their token axis. `prefetch`: states come from memory.
  update_worker(state_update_problem const& problem, state_update_arguments const& arguments,
                void* memory, bool prefetch) noexcept;

  /// Announces parts of heads [first_head, end_head) of a row that is no padding.
  void start_row(std::int64_t row, std::int64_t first_head, std::int64_t end_head) noexcept;
  void run(update_part const& part) noexcept;

 private:
  void start_group(std::int64_t group) noexcept;
  [[nodiscard]] state_ref in_tensor(const_tensor_view const& states, detail::state_place place,
                                    update_part const& part) const noexcept;
  [[nodiscard]] state_ref in_scratch(bool by_channel) const noexcept;
  void step(update_part const& part, std::int64_t token, state_ref const& from,
            state_ref const& to) noexcept;
  void store_state(update_part const& part, std::int64_t token, state_ref const& from,
                   state_ref const& to) const noexcept;
  void read_inputs(update_part const& part, std::int64_t token) noexcept;
  void write_out(update_part const& part, std::int64_t token) noexcept;

  state_update_problem const& problem_;
  state_update_arguments const& arguments_;
  bool prefetch_;
  update_scratch scratch_;
  std::int64_t row_ = -1;
  std::int64_t first_head_ = 0;
  std::int64_t group_ = -1;
};

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
