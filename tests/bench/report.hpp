#pragma once

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "benchmark/interleaved.hpp"

// What the side-by-side prints: one row per figure that is held against a goal, one JSON line per
// measurement.

namespace mambatile::benchmark {

/// A number with the goal it has to reach.
struct figure {
  std::string what;
  double value = 0;  ///< 0 where it could not be measured
  double goal = 0;
  bool at_most = false;

  [[nodiscard]] bool met() const noexcept {
    return at_most ? value > 0 && value <= goal : value >= goal;
  }
};

/// One cell: an operator on one shape with one number of threads.
struct measurement {
  std::string group = {};  ///< "prefill", "decode", ...
  std::string cell = {};   ///< what tells it from its neighbours: "mamba2-130m T=512"
  int threads = 1;
  std::optional<timing> ours = {};
  std::optional<timing> ggml = {};
  std::optional<double> ggml_difference = {};  ///< largest slice error of our output against ggml's
  std::vector<figure> figures = {};
  /// More to keep: sizes, rates, plan.
  std::map<std::string, double> numbers = {};
  std::map<std::string, std::string> words = {};
  std::string problem = {};  ///< why there is no timing; empty when all is well
};

class report {
 public:
  /// Writes JSON lines to the file, where there is one.
  explicit report(std::string const& json_path);

  void machine(std::map<std::string, std::string> const& words,
               std::map<std::string, double> const& numbers);
  void add(measurement const& cell);
  /// Prints how many figures met their goals, and which did not.
  void summary() const;
  [[nodiscard]] bool all_met() const noexcept { return met_ == figures_; }
  /// Cells that have no timing.
  [[nodiscard]] int unmeasured() const noexcept { return unmeasured_; }

 private:
  std::ofstream json_;
  std::string group_;
  int met_ = 0;
  int figures_ = 0;
  int unmeasured_ = 0;
  std::vector<std::string> missed_;
};

}  // namespace mambatile::benchmark
