#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>

#include "support/random_numbers.hpp"
#include "support/update_trial.hpp"

namespace mambatile::testing {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

void fill_nan(tensor_view const& host) {
  for_each_offset(host, [&](std::int64_t offset) { test_tensor::set(host, offset, not_a_number); });
}

}  // namespace

std::string to_string(update_trial const& trial) {
  return fmt::format(
      "{} seed={} stored={} token_axis={} in_place={} inputs={} states={} spare={} threads={}",
      to_string(trial.problem), trial.seed, trial.stored, trial.token_axis, trial.in_place,
      to_string(trial.inputs), to_string(trial.states), trial.spare_capacity, trial.threads);
}

update_tensors::update_tensors(update_trial const& trial) : trial_(trial) {
  make_inputs();
  make_slots();
  make_states();
  for (auto const* output : {&out, &final_states}) {
    if (*output) output->memory().allow(output->view());
  }
}

test_tensor update_tensors::token_tensor(dtype type, std::vector<std::int64_t> inner) const {
  std::vector<std::int64_t> shape = {trial_.problem.max_batch};
  if (trial_.token_axis) shape.push_back(trial_.problem.max_seqlen);
  shape.insert(shape.end(), inner.begin(), inner.end());
  return test_tensor(type, shape, trial_.inputs);
}

void update_tensors::make_inputs() {
  auto const& problem = trial_.problem;
  auto const h = problem.nheads;
  auto const p = problem.headdim;
  auto const fill = [&](test_tensor& tensor, std::string_view name, double scale) {
    random_numbers numbers(trial_.seed, name);
    tensor.fill([&] { return scale * numbers.normal(); });
  };
  x = token_tensor(problem.io, {h, p});
  B = token_tensor(problem.io, {problem.ngroups, problem.dstate});
  C = token_tensor(problem.io, {problem.ngroups, problem.dstate});
  out = token_tensor(problem.io, {h, p});
  // Large enough that a single small step from zero keeps clear of f16's subnormal numbers.
  fill(x, "x", 4.0);
  fill(B, "B", 0.5);
  // Towards B: a single step from zero gives x (B . C), which must not cancel.
  auto const towards = values(B.image());
  random_numbers around(trial_.seed, "C");
  std::size_t next = 0;
  C.fill([&] { return 0.5 * towards[next++] + 0.25 * around.normal(); });
  if (problem.has_z) {
    z = token_tensor(problem.io, {h, p});
    fill(z, "z", 1.0);
  }
  if (problem.D != skip::none) {
    D = problem.D == skip::per_head ? test_tensor(problem.D_type, {h}, trial_.inputs)
                                    : test_tensor(problem.D_type, {h, p}, trial_.inputs);
    fill(D, "D", 1.0);
  }
  A = test_tensor(dtype::f32, {h}, trial_.inputs);
  random_numbers decays(trial_.seed, "A");
  A.fill([&] { return -decays.uniform(1, 16); });
  if (problem.has_dt_bias) {
    dt_bias = test_tensor(problem.dt_bias_type, {h}, trial_.inputs);
    random_numbers biases(trial_.seed, "dt_bias");
    dt_bias.fill([&] { return problem.dt_softplus ? biases.uniform(-4, -2) : 0.01; });
  }
  dt = token_tensor(problem.dt, {h});
  random_numbers steps(trial_.seed, "dt");
  dt.fill([&] {
    double const step = steps.log_uniform(1e-3, 1e-1);
    if (!problem.dt_softplus) return step;
    return problem.has_dt_bias ? steps.normal() : std::log(std::expm1(step));
  });
}

// Each row has slots of its own, in shuffled order. Row 1 starts from zero, row 2 writes no state
// after its last token, and with skip_padding the last row is padding. In place, a row writes over
// the slots it may start from, row 0 elsewhere where it has one slot.
void update_tensors::make_slots() {
  auto const& problem = trial_.problem;
  auto const batch = problem.max_batch;
  auto const own = std::max({problem.max_seqlen, trial_.stored, std::int64_t{1}});
  std::vector<std::int64_t> shuffled(static_cast<std::size_t>(batch * own + 3));
  std::iota(shuffled.begin(), shuffled.end(), 0);
  random_numbers order(trial_.seed, "slots");
  for (auto i = static_cast<std::int64_t>(shuffled.size()) - 1; i > 0; --i) {
    std::swap(shuffled[static_cast<std::size_t>(i)],
              shuffled[static_cast<std::size_t>(order.index(i + 1))]);
  }
  auto const slot = [&](std::int64_t row, std::int64_t column) {
    return static_cast<double>(shuffled[static_cast<std::size_t>(row * own + column)]);
  };
  auto const is_padding = [&](std::int64_t row) {
    return problem.skip_padding && row == batch - 1;
  };
  auto const table = [&](bool per_token, std::int64_t columns) {
    return per_token ? test_tensor(dtype::i32, {batch, columns}, trial_.inputs)
                     : test_tensor(dtype::i32, {batch}, trial_.inputs);
  };
  if (problem.has_state_source) {
    state_source = table(problem.per_token_source, trial_.stored);
    auto const columns = problem.per_token_source ? trial_.stored : 1;
    std::int64_t at = 0;
    state_source.fill([&] {
      auto const row = at / columns;
      auto const column = at++ % columns;
      return row == 1 || is_padding(row) ? -1.0 : slot(row, column);
    });
  }
  if (problem.has_state_target) {
    state_target = table(problem.per_token_target, problem.max_seqlen);
    auto const columns = problem.per_token_target ? problem.max_seqlen : 1;
    std::int64_t at = 0;
    state_target.fill([&] {
      auto const row = at / std::max<std::int64_t>(columns, 1);
      auto const column = at++ % std::max<std::int64_t>(columns, 1);
      if (is_padding(row) || (row == 2 && column == columns - 1)) return -1.0;
      if (trial_.in_place && row == 0 && columns == 1) return slot(batch, 0);
      return trial_.in_place ? slot(row, column) : slot(row, own - 1 - column);
    });
  }
  if (problem.per_token_source) {
    num_accepted = test_tensor(dtype::i32, {batch}, trial_.inputs);
    random_numbers counts(trial_.seed, "num_accepted");
    std::int64_t row = 0;
    num_accepted.fill([&] {
      auto const column = counts.index(trial_.stored);
      if (is_padding(row++)) return 0.0;
      return static_cast<double>(problem.source_has_start ? column : column + 1);
    });
  }
  if (problem.has_row_ids) {
    row_ids = test_tensor(dtype::i32, {batch}, trial_.inputs);
    random_numbers ids(trial_.seed, "row_ids");
    row_ids.fill([&] { return static_cast<double>(ids.index(1 << 20)); });
  }
  if (problem.skip_padding) {
    for (auto const* input : {&x, &dt, &B, &C, &z}) {
      if (*input) fill_nan(slice(input->image(), 0, batch - 1, 1));
    }
  }
}

void update_tensors::make_states() {
  auto const& problem = trial_.problem;
  auto const batch = problem.max_batch;
  auto const own = std::max({problem.max_seqlen, trial_.stored, std::int64_t{1}});
  auto const states = [&](bool pool, bool per_token, std::int64_t columns) {
    std::vector<std::int64_t> shape = {pool ? batch * own + 3 : batch};
    if (!pool && per_token) shape.push_back(columns);
    for (auto const extent : {problem.nheads, problem.headdim, problem.dstate}) {
      shape.push_back(extent);
    }
    return test_tensor(problem.state, shape, trial_.states);
  };
  if (problem.has_initial_states) {
    initial_states = states(problem.has_state_source, problem.per_token_source, trial_.stored);
    // Only what rows start from is a number.
    auto const image = initial_states.image();
    std::vector<double> source;
    if (state_source) source = values(state_source.image());
    std::vector<double> accepted;
    if (num_accepted) accepted = values(num_accepted.image());
    random_numbers numbers(trial_.seed, "initial_states");
    for (std::int64_t row = 0; row < batch; ++row) {
      auto const index = static_cast<std::size_t>(row);
      auto const first = problem.source_has_start ? 0 : 1;
      auto const column = problem.per_token_source
                              ? static_cast<std::int64_t>(accepted[index]) - first
                              : std::int64_t{0};
      if (column < 0) continue;
      auto part = image;
      if (problem.has_state_source) {
        auto const columns = problem.per_token_source ? trial_.stored : 1;
        auto const at =
            static_cast<std::int64_t>(source[static_cast<std::size_t>(row * columns + column)]);
        if (at < 0) continue;
        part = slice(part, 0, at, 1);
      } else {
        part = slice(part, 0, row, 1);
        if (problem.per_token_source) part = slice(part, 1, column, 1);
      }
      for_each_offset(part, [&](std::int64_t offset) {
        test_tensor::set(part, offset, 0.5 * numbers.normal());
      });
    }
  }
  if (problem.has_final_states) {
    final_states = trial_.in_place ? initial_states
                                   : states(problem.has_state_target, problem.per_token_target,
                                            problem.max_seqlen);
  }
}

namespace {

template <class View>
state_update_arguments collect(update_tensors const& t, View const& view) {
  state_update_arguments arguments;
  arguments.x = view(t.x);
  arguments.dt = view(t.dt);
  arguments.A = view(t.A);
  arguments.B = view(t.B);
  arguments.C = view(t.C);
  arguments.D = view(t.D);
  arguments.z = view(t.z);
  arguments.dt_bias = view(t.dt_bias);
  arguments.initial_states = view(t.initial_states);
  arguments.state_source = view(t.state_source);
  arguments.state_target = view(t.state_target);
  arguments.num_accepted = view(t.num_accepted);
  arguments.row_ids = view(t.row_ids);
  arguments.rounding_seed = 77;
  arguments.out = view(t.out);
  arguments.final_states = view(t.final_states);
  return arguments;
}

}  // namespace

state_update_arguments update_tensors::arguments() const {
  return collect(*this, [](test_tensor const& tensor) { return tensor.view(); });
}

state_update_arguments update_tensors::images() const {
  return collect(*this, [](test_tensor const& tensor) { return tensor.image(); });
}

state_update_arguments update_tensors::results() const {
  auto given = images();
  // Outputs are only read from here on.
  auto const result = [](test_tensor const& tensor) {
    auto view = tensor.image();
    if (view) view.data = const_cast<void*>(tensor.result().data);
    return view;
  };
  given.out = result(out);
  given.final_states = result(final_states);
  return given;
}

std::vector<test_tensor const*> update_tensors::all() const {
  std::vector<test_tensor const*> present;
  for (auto const* tensor : {&x, &dt, &A, &B, &C, &D, &z, &dt_bias, &initial_states, &state_source,
                             &state_target, &num_accepted, &row_ids, &out, &final_states}) {
    bool const is_known = std::any_of(present.begin(), present.end(), [&](auto const* other) {
      return *tensor && &other->memory() == &tensor->memory();
    });
    if (*tensor && !is_known) present.push_back(tensor);
  }
  return present;
}

void update_tensors::upload() const {
  for (auto const* tensor : all()) tensor->upload();
}
void update_tensors::download() const {
  for (auto const* tensor : all()) tensor->download();
}
void update_tensors::check_guards() const {
  for (auto const* tensor : all()) CHECK(tensor->memory().stray_write() == std::string());
}
bool update_tensors::is_untouched() const {
  auto const present = all();
  return std::all_of(present.begin(), present.end(),
                     [](auto const* tensor) { return tensor->memory().is_untouched(); });
}

}  // namespace mambatile::testing
