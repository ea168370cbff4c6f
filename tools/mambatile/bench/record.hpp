#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <mambatile/dtype.hpp>

// What a benchmark found out about one call, and how it is printed.

namespace mambatile::program {

/// Another library's time for the same work, measured in the same rounds.
struct peer_time {
  std::string name;
  double ms = 0;
  double ms_min = 0;
  double ratio = 0;  ///< of its time to ours: the median of all rounds' ratios
};

struct bench_record {
  std::string operator_name;
  std::string backend;
  std::string plan;
  std::string shape;
  std::string variant = "plain";
  std::int64_t batch = 0;
  std::int64_t seqlen = 0;
  int threads = 0;  ///< that ran
  dtype io = dtype::f32;
  std::optional<dtype> state = {};  ///< where it is one of the operator's choices
  double ms = 0;                    ///< median
  double ms_min = 0;
  std::size_t workspace_bytes = 0;
  std::vector<peer_time> peers;

  /// Useful work, whatever the algorithm does beyond it, and the median rate of the probe that is
  /// its roof; 0 where none applies.
  double gflop = 0;
  double peak_gflops = 0;
  /// Bytes that must be read and written; for work that is bound by memory.
  double moved_bytes = 0;
  /// The rate over that of the roof (fused multiply-adds, or a plain loop over memory) in the same
  /// rounds.
  std::optional<double> fraction_of_peak = {};
  /// All tensors of the call.
  double tensor_bytes = 0;

  [[nodiscard]] double tokens_per_s() const noexcept {
    return static_cast<double>(batch * seqlen) / (ms * 1e-3);
  }
  [[nodiscard]] double gflops() const noexcept { return gflop / (ms * 1e-3); }
  [[nodiscard]] double gbytes_per_s() const noexcept { return moved_bytes / ms * 1e-6; }
};

/// Threads that a plan's calls run on, of those that were asked for.
template <class Plan>
[[nodiscard]] int threads_of(Plan const& plan, int asked) {
  return plan.threads() > 0 ? plan.threads() : asked;
}

/// One JSON object a line.
void print_json(bench_record const& record);

/// One table.
void print_table(std::vector<bench_record> const& records);

}  // namespace mambatile::program
