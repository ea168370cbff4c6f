#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <mambatile/backend.hpp>

#include "benchmark/interleaved.hpp"
#include "benchmark/peer.hpp"
#include "evaluation/host_tensor.hpp"
#include "evaluation/scan_shapes.hpp"
#include "report.hpp"

// The cells of the side-by-side, group by group.

namespace mambatile::benchmark {

struct settings {
  backend const* served_by = nullptr;
  std::vector<int> threads = {1, 2};
  std::set<std::string> shapes;  ///< empty: all
  double seconds = 0.5;          ///< about what one cell's timing may take

  [[nodiscard]] bool wants(std::string_view shape) const {
    return shapes.empty() || shapes.contains(std::string(shape));
  }
  [[nodiscard]] interleaving timing() const {
    interleaving how;
    how.seconds = seconds;
    return how;
  }
  [[nodiscard]] int most_threads() const;
};

/// The shapes that models have: mamba2-130m, mamba2-2.7b, nemotron-h-8b.
[[nodiscard]] std::vector<evaluation::scan_shape> model_shapes(settings const& with);

void measure_prefill(settings const& with, report& to);
void measure_short_prefill(settings const& with, report& to);
void measure_odd_shapes(settings const& with, report& to);
void measure_packed(settings const& with, report& to);
void measure_accuracy(settings const& with, report& to);
void measure_decode(settings const& with, report& to);
void measure_mixed(settings const& with, report& to);
void measure_conv(settings const& with, report& to);
void measure_norm(settings const& with, report& to);

/// A planned operator with its workspace, to be called again and again.
template <class Problem>
class planned {
 public:
  planned(backend const& served_by, Problem const& problem,
          typename Problem::arguments_type const& arguments)
      : plan_(served_by.plan(problem)),
        workspace_(served_by.allocate({served_by.kind(), 0}, plan_.workspace_bytes())),
        arguments_(arguments) {
    on_.where = {served_by.kind(), 0};
  }

  void operator()() const { plan_.execute(arguments_, workspace_.workspace(), on_); }
  void operator()(typename Problem::arguments_type const& arguments) const {
    plan_.execute(arguments, workspace_.workspace(), on_);
  }
  [[nodiscard]] std::string description() const { return std::string(plan_.description()); }

 private:
  operator_plan<Problem> plan_;
  buffer workspace_;
  typename Problem::arguments_type arguments_;
  queue on_;
};

/// Packed states of the backend's preferred storage order, uninitialised.
[[nodiscard]] tensor_view preferred_states(backend const& served_by,
                                           evaluation::host_tensor& memory);

/// The ratio of ggml's time to ours as a figure: 0 without a ggml in this program.
[[nodiscard]] figure ggml_ratio(measurement const& cell, double goal,
                                std::string what = "times faster than ggml");

}  // namespace mambatile::benchmark
