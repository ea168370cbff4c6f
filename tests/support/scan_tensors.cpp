#include "support/scan_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

#include <catch2/catch_test_macros.hpp>

namespace mambatile::testing {
namespace {

double inverse_softplus(double value) { return value > 20.0 ? value : std::log(std::expm1(value)); }

// delta of token l before rounding.
double draw_step(std::string const& regime, std::int64_t l, random_numbers& numbers) {
  if (regime == "bigdecay") return numbers.uniform(2.0, 10.0);
  if (regime == "cliff") {
    return l % 101 < 37 ? numbers.uniform(2.0, 8.0) : numbers.log_uniform(1e-4, 1e-2);
  }
  if (regime == "smalldt") return numbers.log_uniform(3e-7, 5e-5);
  if (regime == "dtzero") return numbers.uniform() < 0.5 ? 0.0 : numbers.log_uniform(1e-3, 1e-1);
  if (regime == "hugedt") return numbers.uniform(500.0, 1000.0);
  if (regime == "normal" || regime == "strongA") return numbers.log_uniform(1e-3, 1e-1);
  throw std::invalid_argument("no regime " + regime);
}

template <class Visitor>
void for_each_index(std::int64_t batch, std::int64_t seqlen, Visitor const& visit) {
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t l = 0; l < seqlen; ++l) visit(b, l);
  }
}

void fill_nan(tensor_view const& host) {
  for_each_offset(host, [&](std::int64_t offset) {
    test_tensor::set(host, offset, std::numeric_limits<double>::quiet_NaN());
  });
}

}  // namespace

scan_tensors::scan_tensors(scan_trial const& trial) : trial_(trial) {
  make_inputs();
  make_packing();
  make_states();
  make_outputs();
  poison_unused_tokens();
}

std::int64_t scan_tensors::rows() const {
  return trial_.problem.pack == packing::cu_seqlens ? trial_.problem.max_sequences
                                                    : trial_.problem.max_batch;
}

void scan_tensors::make_inputs() {
  auto const& problem = trial_.problem;
  auto const b = problem.max_batch;
  auto const l = problem.max_seqlen;
  auto const h = problem.nheads;
  auto const p = problem.headdim;
  auto const g = problem.ngroups;
  auto const n = problem.dstate;
  auto const io = problem.io;
  if (trial_.one_buffer) {
    place_in_one_buffer();
  } else {
    x = test_tensor(io, {b, l, h, p}, trial_.inputs);
    B = test_tensor(io, {b, l, g, n}, trial_.inputs);
    C = test_tensor(io, {b, l, g, n}, trial_.inputs);
    if (problem.has_z) z = test_tensor(io, {b, l, h, p}, trial_.inputs);
  }
  dt = test_tensor(problem.dt, {b, l, h}, trial_.inputs);
  A = test_tensor(dtype::f32, {h}, trial_.inputs);

  auto const half_normal = [](random_numbers numbers) {
    return [numbers]() mutable { return 0.5 * numbers.normal(); };
  };
  auto const normal = [](random_numbers numbers) {
    return [numbers]() mutable { return numbers.normal(); };
  };
  auto fill = [](test_tensor& tensor, auto next) { tensor.fill([&] { return next(); }); };
  fill(x, half_normal(numbers("x")));
  fill(B, half_normal(numbers("B")));
  fill(C, half_normal(numbers("C")));
  if (problem.has_z) fill(z, normal(numbers("z")));
  auto decays = numbers("A");
  bool const is_strong = trial_.regime == "strongA";
  A.fill([&] { return is_strong ? -decays.uniform(100, 1000) : -decays.uniform(1, 16); });
  if (problem.D != skip::none) {
    D = problem.D == skip::per_head ? test_tensor(problem.D_type, {h}, trial_.inputs)
                                    : test_tensor(problem.D_type, {h, p}, trial_.inputs);
    fill(D, normal(numbers("D")));
  }
  fill_steps();
}

// dt and dt_bias, such that the step is distributed as the regime says.
void scan_tensors::fill_steps() {
  auto const& problem = trial_.problem;
  auto biases = numbers("dt_bias");
  if (problem.has_dt_bias) {
    dt_bias = test_tensor(problem.dt_bias_type, {problem.nheads}, trial_.inputs);
    dt_bias.fill([&] {
      if (trial_.regime == "dtzero") return 0.0;
      double const step = biases.log_uniform(1e-3, 1e-1);
      return problem.dt_softplus ? inverse_softplus(step) : -0.1 * step;
    });
  }
  auto const bias = problem.has_dt_bias
                        ? values(dt_bias.image())
                        : std::vector<double>(static_cast<std::size_t>(problem.nheads));
  auto steps = numbers("dt");
  std::int64_t position = 0;
  dt.fill([&] {
    auto const h = static_cast<std::size_t>(position % problem.nheads);
    auto const l = position / problem.nheads % std::max<std::int64_t>(problem.max_seqlen, 1);
    ++position;
    double const step = draw_step(trial_.regime, l, steps);
    if (step == 0.0) return problem.dt_softplus ? -200.0 : 0.0;
    return (problem.dt_softplus ? inverse_softplus(step) : step) - bias[h];
  });
}

// As a block computes them from one projection: rows [z, x, B, C, out] and a few columns more.
void scan_tensors::place_in_one_buffer() {
  auto const& problem = trial_.problem;
  auto const heads = problem.nheads * problem.headdim;
  auto const groups = problem.ngroups * problem.dstate;
  auto const width = 3 * heads + 2 * groups + 3;
  auto const memory = std::make_shared<guarded_memory>(
      static_cast<std::size_t>(problem.max_batch * problem.max_seqlen * width + 1) *
      size_of(problem.io));
  std::int64_t begin = 1;
  auto const columns = [&](std::int64_t outer, std::int64_t inner) {
    test_tensor part(memory, problem.io, {problem.max_batch, problem.max_seqlen, outer, inner},
                     {problem.max_seqlen * width, width, inner, 1}, begin);
    begin += outer * inner;
    return part;
  };
  auto const gate = columns(problem.nheads, problem.headdim);
  if (problem.has_z) z = gate;
  x = columns(problem.nheads, problem.headdim);
  B = columns(problem.ngroups, problem.dstate);
  C = columns(problem.ngroups, problem.dstate);
  out = columns(problem.nheads, problem.headdim);
}

void scan_tensors::make_packing() {
  auto const& problem = trial_.problem;
  auto const& lengths = trial_.lengths;
  if (problem.pack == packing::cu_seqlens) {
    cu_seqlens = test_tensor(dtype::i32, {problem.max_sequences + 1});
    double end = 0;
    std::size_t next = 0;
    cu_seqlens.fill([&] {
      double const here = end;
      if (next < lengths.size()) end += static_cast<double>(lengths[next++]);
      return here;
    });
  }
  if (problem.pack == packing::seq_idx) {
    seq_idx = test_tensor(dtype::i32, {problem.max_batch, problem.max_seqlen}, trial_.inputs);
    std::int64_t position = 0;
    std::int64_t id = 0;
    std::int64_t left = 0;
    std::size_t next = 0;
    seq_idx.fill([&] {
      auto const l = position++ % problem.max_seqlen;
      if (l == 0) {
        // Rows differ in their first id and in where they enter the list of lengths.
        id = position / problem.max_seqlen;
        left = lengths.empty() ? problem.max_seqlen : lengths[next++ % lengths.size()];
      } else if (left == 0) {
        id += 1 + l % 2;
        left = lengths.empty() ? problem.max_seqlen : lengths[next++ % lengths.size()];
      }
      --left;
      bool const is_padding = trial_.padding_every != 0 && l % trial_.padding_every == 0;
      return is_padding ? -1.0 : static_cast<double>(id);
    });
  }
}

void scan_tensors::make_states() {
  auto const& problem = trial_.problem;
  auto const slots = rows() + 3;
  auto const state_tensor = [&](bool is_pool) {
    return test_tensor(problem.state,
                       {is_pool ? slots : rows(), problem.nheads, problem.headdim, problem.dstate},
                       trial_.states);
  };
  auto order = numbers("slots");
  std::vector<std::int64_t> shuffled(static_cast<std::size_t>(slots));
  std::iota(shuffled.begin(), shuffled.end(), 0);
  for (auto i = static_cast<std::int64_t>(shuffled.size()) - 1; i > 0; --i) {
    std::swap(shuffled[static_cast<std::size_t>(i)],
              shuffled[static_cast<std::size_t>(order.index(i + 1))]);
  }
  // Row 1 starts from zero, row 2 writes no state. Updating in place, a row writes the slot it
  // reads, except row 0, which moves to a spare one.
  if (problem.has_state_source) {
    state_source = test_tensor(dtype::i32, {rows()});
    std::size_t row = 0;
    state_source.fill([&] {
      auto const slot = static_cast<double>(shuffled[row]);
      return row++ == 1 ? -1.0 : slot;
    });
  }
  if (problem.has_state_target) {
    state_target = test_tensor(dtype::i32, {rows()});
    std::size_t row = 0;
    auto const count = shuffled.size();
    state_target.fill([&] {
      auto const slot =
          trial_.in_place ? shuffled[row == 0 ? count - 1 : row] : shuffled[count - 1 - row];
      return row++ == 2 ? -1.0 : static_cast<double>(slot);
    });
  }
  if (problem.has_initial_states) {
    initial_states = state_tensor(problem.has_state_source);
    auto const image = initial_states.image();
    auto state_numbers = numbers("initial_states");
    for (std::int64_t row = 0; row < rows(); ++row) {
      auto const slot = problem.has_state_source
                            ? values(state_source.image())[static_cast<std::size_t>(row)]
                            : static_cast<double>(row);
      if (slot < 0) continue;
      auto const part = slice(image, 0, static_cast<std::int64_t>(slot), 1);
      for_each_offset(part, [&](std::int64_t offset) {
        test_tensor::set(part, offset, 0.5 * state_numbers.normal());
      });
    }
  }
  if (problem.has_final_states) {
    final_states = trial_.in_place ? initial_states : state_tensor(problem.has_state_target);
  }
}

void scan_tensors::make_outputs() {
  auto const& problem = trial_.problem;
  if (!trial_.one_buffer) {
    out = test_tensor(problem.io,
                      {problem.max_batch, problem.max_seqlen, problem.nheads, problem.headdim},
                      trial_.outputs);
  }
  if (problem.intermediate_every != 0) {
    intermediate_states =
        test_tensor(problem.state,
                    {problem.max_batch, problem.max_seqlen / problem.intermediate_every,
                     problem.nheads, problem.headdim, problem.dstate},
                    trial_.outputs);
  }
  if (problem.has_total_decay) {
    total_decay = test_tensor(dtype::f32, {rows(), problem.nheads}, trial_.outputs);
  }
  for (auto const* output : {&out, &final_states, &intermediate_states, &total_decay}) {
    if (*output) output->memory().allow(output->view());
  }
}

void scan_tensors::poison_unused_tokens() {
  auto const& problem = trial_.problem;
  std::vector<double> ids;
  if (seq_idx) ids = values(seq_idx.image());
  auto const used = cu_seqlens ? static_cast<std::int64_t>(values(cu_seqlens.image()).back())
                               : problem.max_seqlen;
  for_each_index(problem.max_batch, problem.max_seqlen, [&](std::int64_t b, std::int64_t l) {
    bool const is_padding =
        seq_idx && ids[static_cast<std::size_t>(b * problem.max_seqlen + l)] < 0;
    if (!is_padding && l < used) return;
    for (auto const* input : {&x, &dt, &B, &C, &z}) {
      if (*input) fill_nan(slice(slice(input->image(), 0, b, 1), 1, l, 1));
    }
  });
}

scan_arguments scan_tensors::arguments() const {
  return {x.view(),
          dt.view(),
          A.view(),
          B.view(),
          C.view(),
          D.view(),
          z.view(),
          dt_bias.view(),
          initial_states.view(),
          cu_seqlens.view(),
          seq_idx.view(),
          state_source.view(),
          state_target.view(),
          out.view(),
          final_states.view(),
          intermediate_states.view(),
          total_decay.view()};
}

scan_arguments scan_tensors::images() const {
  return {x.image(),
          dt.image(),
          A.image(),
          B.image(),
          C.image(),
          D.image(),
          z.image(),
          dt_bias.image(),
          initial_states.image(),
          cu_seqlens.image(),
          seq_idx.image(),
          state_source.image(),
          state_target.image(),
          out.image(),
          final_states.image(),
          intermediate_states.image(),
          total_decay.image()};
}

scan_arguments scan_tensors::results() const {
  auto given = images();
  // Outputs are only read from here on.
  auto const result = [](test_tensor const& tensor) {
    auto view = tensor.image();
    if (view) view.data = const_cast<void*>(tensor.result().data);
    return view;
  };
  given.out = result(out);
  given.final_states = result(final_states);
  given.intermediate_states = result(intermediate_states);
  given.total_decay = result(total_decay);
  return given;
}

std::vector<test_tensor const*> scan_tensors::all() const {
  std::vector<test_tensor const*> present;
  for (auto const* tensor :
       {&x, &dt, &A, &B, &C, &D, &z, &dt_bias, &initial_states, &cu_seqlens, &seq_idx,
        &state_source, &state_target, &out, &final_states, &intermediate_states, &total_decay}) {
    bool const is_known = std::any_of(present.begin(), present.end(), [&](auto const* other) {
      return *tensor && &other->memory() == &tensor->memory();
    });
    if (*tensor && !is_known) present.push_back(tensor);
  }
  return present;
}

void scan_tensors::upload() const {
  for (auto const* tensor : all()) tensor->upload();
}

void scan_tensors::download() const {
  for (auto const* tensor : all()) tensor->download();
}

void scan_tensors::check_guards() const {
  for (auto const* tensor : all()) CHECK(tensor->memory().stray_write() == std::string());
}

bool scan_tensors::outputs_are_untouched() const {
  auto const present = all();
  return std::all_of(present.begin(), present.end(),
                     [](auto const* tensor) { return tensor->memory().is_untouched(); });
}

}  // namespace mambatile::testing
