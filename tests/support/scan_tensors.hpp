#pragma once

#include <cstdint>
#include <vector>

#include <mambatile/scan.hpp>

#include "support/random_numbers.hpp"
#include "support/scan_trial.hpp"
#include "support/test_tensor.hpp"

namespace mambatile::testing {

/// The tensors of a trial: inputs filled, outputs poisoned, whatever a scan must not read (padding,
/// tokens beyond the last sequence, slots that no row reads) NaN.
class scan_tensors {
 public:
  explicit scan_tensors(scan_trial const& trial);

  test_tensor x, dt, A, B, C, D, z, dt_bias, initial_states;
  test_tensor cu_seqlens, seq_idx, state_source, state_target;
  test_tensor out, final_states, intermediate_states, total_decay;

  /// On the device.
  [[nodiscard]] scan_arguments arguments() const;
  /// The images on the host: inputs as prepared, outputs as before the call.
  [[nodiscard]] scan_arguments images() const;
  /// What the last download brought; inputs are those of images().
  [[nodiscard]] scan_arguments results() const;

  void upload() const;
  void download() const;
  /// After download: checks that no byte changed outside the outputs' elements.
  void check_guards() const;
  /// After download: whether no output changed at all.
  [[nodiscard]] bool outputs_are_untouched() const;

 private:
  void make_inputs();
  void make_packing();
  void make_states();
  void make_outputs();
  void fill_steps();
  void poison_unused_tokens();
  void place_in_one_buffer();
  [[nodiscard]] random_numbers numbers(std::string_view name) const {
    return random_numbers(trial_.seed, name);
  }
  [[nodiscard]] std::int64_t rows() const;
  [[nodiscard]] std::vector<test_tensor const*> all() const;

  scan_trial trial_;
};

}  // namespace mambatile::testing
