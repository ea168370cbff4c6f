#include "cells.hpp"

#include <algorithm>

namespace mambatile::benchmark {

int settings::most_threads() const { return *std::ranges::max_element(threads); }

std::vector<evaluation::scan_shape> model_shapes(settings const& with) {
  std::vector<evaluation::scan_shape> shapes;
  for (auto const* name : {"mamba2-130m", "mamba2-2.7b", "nemotron-h-8b"}) {
    if (with.wants(name)) shapes.push_back(*evaluation::find_scan_shape(name));
  }
  return shapes;
}

tensor_view preferred_states(backend const& served_by, evaluation::host_tensor& memory) {
  auto view = memory.view();
  if (served_by.preferred_state_layout() == state_layout::headdim_innermost) {
    auto const p = view.extent(2);
    auto const n = view.extent(3);
    view.strides = {view.extent(1) * p * n, p * n, 1, p};
  }
  return view;
}

figure ggml_ratio(measurement const& cell, double goal, std::string what) {
  double const value = cell.ours && cell.ggml ? cell.ggml->minimum / cell.ours->minimum : 0;
  return {std::move(what), value, goal};
}

}  // namespace mambatile::benchmark
