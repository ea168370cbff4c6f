#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <mambatile/conv1d.hpp>

#include "support/random_numbers.hpp"
#include "support/test_tensor.hpp"

namespace mambatile::testing {

/// How x and out of a convolution lie in memory.
enum class conv1d_layout {
  channels,   ///< (b, l, c), dense
  tokens,     ///< (b, c, l), dense
  slice,      ///< columns of a wider buffer, NaN around them, from an odd element on
  scattered,  ///< no axis has stride 1
};

/// One convolution to be tried. Everything that it does follows from these fields.
struct conv1d_trial {
  /// Sizes and options. Capacities are the sizes of the call.
  conv1d_update_problem problem;
  bool is_update = false;  ///< causal_conv1d_update, else causal_conv1d
  std::uint64_t seed = 1;
  /// cu_seqlens: lengths of the sequences. seq_idx: cyclically, until a row is full.
  std::vector<std::int64_t> lengths;
  std::int64_t padding_every = 0;  ///< seq_idx: every k-th token is padding
  /// per_token_source: states per row that the previous call stored.
  std::int64_t stored = 0;
  conv1d_layout layout = conv1d_layout::channels;
  std::int64_t slice_spare = 13;  ///< slice: columns of the buffer that are none of the tensor's
  std::int64_t slice_begin = 5;   ///< slice: elements before the first
  arrangement states = arrangement::packed;
  bool in_place = false;  ///< final_states is the same view as initial_states
  bool token_axis = true;
  std::int64_t spare_capacity = 0;
  int threads = 0;  ///< as queue::threads

  [[nodiscard]] std::int64_t rows() const noexcept {
    return problem.pack == packing::cu_seqlens ? problem.max_sequences : problem.max_batch;
  }
};

/// The tensors of a trial: inputs filled, outputs poisoned, what must not be read NaN.
class conv1d_tensors {
 public:
  explicit conv1d_tensors(conv1d_trial const& trial);

  test_tensor x, weight, bias, initial_states, cu_seqlens, seq_idx, state_source, state_target,
      cache_seqlens, num_accepted, num_previous, out, final_states;

  /// On the device.
  [[nodiscard]] conv1d_update_arguments arguments() const;
  [[nodiscard]] conv1d_update_arguments images() const;

  void upload() const;
  void download() const;
  /// After download: no byte changed outside of the outputs' elements.
  void check_guards() const;
  [[nodiscard]] bool outputs_are_untouched() const;
  [[nodiscard]] std::vector<std::uint32_t> output_bits() const;

 private:
  void make_inputs();
  void make_packing();
  void make_states();
  void make_slots();
  void make_speculation();
  [[nodiscard]] random_numbers numbers(std::string_view name) const {
    return random_numbers(trial_.seed, name);
  }
  [[nodiscard]] std::vector<test_tensor const*> all() const;

  conv1d_trial trial_;
};

/// The causal_conv1d among the arguments of an update that is none.
[[nodiscard]] conv1d_arguments without_speculation(conv1d_update_arguments const& arguments);
[[nodiscard]] conv1d_problem without_speculation(conv1d_update_problem const& problem);

/// Runs the trial's operator.
void execute(conv1d_trial const& trial, conv1d_update_arguments const& arguments);

/// Runs a trial and returns its tensors, downloaded; only guards are checked.
[[nodiscard]] conv1d_tensors run_conv1d_trial(conv1d_trial const& trial);

/// Runs a trial and checks it against the definition in f64.
void check_conv1d(conv1d_trial const& trial);

}  // namespace mambatile::testing
