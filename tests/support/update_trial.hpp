#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <mambatile/state_update.hpp>

#include "support/test_tensor.hpp"

namespace mambatile::testing {

/// One state_update to be tried: what is computed, on which numbers, and how they lie in memory.
struct update_trial {
  /// Sizes and options. Capacities are the sizes of the call; spare_capacity adds to them.
  state_update_problem problem;
  std::uint64_t seed = 1;
  /// States per row that a per-token source offers.
  std::int64_t stored = 3;
  /// False: the token axis is left out; for max_seqlen = 1.
  bool token_axis = true;
  /// final_states is the same view as initial_states.
  bool in_place = false;
  arrangement inputs = arrangement::packed;
  arrangement states = arrangement::packed;
  std::int64_t spare_capacity = 0;
  int threads = 0;

  [[nodiscard]] state_update_problem planned_problem() const {
    auto planned = problem;
    planned.max_batch += spare_capacity;
    planned.max_seqlen += spare_capacity;
    return planned;
  }
};

/// Everything that tells one trial from another.
[[nodiscard]] std::string to_string(update_trial const& trial);

/// The tensors of a trial: inputs filled, outputs poisoned; whatever must not be read (rows of
/// padding, states that no row starts from) NaN.
class update_tensors {
 public:
  explicit update_tensors(update_trial const& trial);

  test_tensor x, dt, A, B, C, D, z, dt_bias, initial_states;
  test_tensor state_source, state_target, num_accepted, row_ids;
  test_tensor out, final_states;

  /// On the device.
  [[nodiscard]] state_update_arguments arguments() const;
  /// The images on the host: inputs as prepared, outputs as before the call.
  [[nodiscard]] state_update_arguments images() const;
  /// What the last download brought; inputs are those of images().
  [[nodiscard]] state_update_arguments results() const;

  void upload() const;
  void download() const;
  /// After download: checks that no byte changed outside the outputs' elements.
  void check_guards() const;
  /// After download: whether nothing changed at all.
  [[nodiscard]] bool is_untouched() const;

 private:
  void make_inputs();
  void make_slots();
  void make_states();
  [[nodiscard]] test_tensor token_tensor(dtype type, std::vector<std::int64_t> inner) const;
  [[nodiscard]] std::vector<test_tensor const*> all() const;

  update_trial trial_;
};

}  // namespace mambatile::testing
