#pragma once

#include <cstdint>
#include <vector>

#include <mambatile/norm.hpp>

#include "support/test_tensor.hpp"

namespace mambatile::testing {

/// One gated norm to be tried.
struct norm_trial {
  gated_rms_norm_problem problem;
  std::vector<std::int64_t> outer;  ///< extents of the outer axes; their product is max_rows
  std::uint64_t seed = 1;
  arrangement lies = arrangement::packed;
  double scale = 1.0;  ///< of x
  double z_scale = 2.0;
  std::int64_t zero_rows_every = 0;
  int threads = 0;
};

class norm_tensors {
 public:
  explicit norm_tensors(norm_trial const& trial);

  test_tensor x, z, weight, bias, out;

  [[nodiscard]] gated_rms_norm_arguments arguments() const;
  [[nodiscard]] gated_rms_norm_arguments images() const;
  void upload() const;
  void download() const;
  void check_guards() const;
};

/// Runs a trial and returns its tensors, downloaded; only guards are checked.
[[nodiscard]] norm_tensors run_norm_trial(norm_trial const& trial);

/// Runs a trial and checks it against f64.
void check_norm_trial(norm_trial const& trial);

}  // namespace mambatile::testing
