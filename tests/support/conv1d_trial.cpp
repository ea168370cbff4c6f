#include "support/conv1d_trial.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include <catch2/catch_test_macros.hpp>

#include "conv1d_forms.hpp"
#include "evaluation/conv_norm_tolerances.hpp"
#include "evaluation/tensor_error.hpp"
#include "reference/convolution.hpp"
#include "support/execute.hpp"

namespace mambatile::testing {
namespace {

test_tensor make_activations(conv1d_trial const& trial) {
  auto const type = trial.problem.io;
  auto const b = trial.problem.max_batch;
  auto const l = trial.problem.max_seqlen;
  auto const c = trial.problem.channels;
  std::vector<std::int64_t> strides = {l * c, c, 1};
  std::int64_t begin = 0;
  std::int64_t elements = b * l * c;
  switch (trial.layout) {
    case conv1d_layout::channels: break;
    case conv1d_layout::tokens: strides = {l * c, 1, l}; break;
    case conv1d_layout::slice: {
      auto const pitch = c + trial.slice_spare;
      strides = {(l + 1) * pitch, pitch, 1};
      begin = trial.slice_begin;
      elements = b * (l + 1) * pitch + begin;
      break;
    }
    case conv1d_layout::scattered:
      strides = {l * c * 6 + 7, c * 3 + 1, 3};
      begin = 1;
      elements = b * strides[0] + begin;
      break;
  }
  auto memory = std::make_shared<guarded_memory>(
      static_cast<std::size_t>(std::max<std::int64_t>(elements, 1)) * size_of(type));
  return test_tensor(std::move(memory), type, {b, l, c}, strides, begin);
}

test_tensor indices(std::vector<std::int64_t> const& shape, std::vector<std::int64_t> const& from) {
  test_tensor tensor(dtype::i32, shape);
  std::size_t position = 0;
  return std::move(tensor.fill([&] { return static_cast<double>(from[position++]); }));
}

void fill_nan(tensor_view const& host) {
  for_each_offset(host, [&](std::int64_t offset) {
    test_tensor::set(host, offset, std::numeric_limits<double>::quiet_NaN());
  });
}

template <class Void>
basic_tensor_view<Void> without_token_axis(basic_tensor_view<Void> view) {
  view.extents[1] = view.extents[2];
  view.strides[1] = view.strides[2];
  view.rank = 2;
  return view;
}

// A NaN-free mark for what nobody writes.
constexpr double untouched = -1e300;

class expectation final : public mambatile::detail::reference::conv1d_results {
 public:
  expectation(conv1d_update_problem const& problem, conv1d_update_arguments const& host)
      : problem_(problem), host_(host) {
    out_.assign(static_cast<std::size_t>(host.out.size()), untouched);
    if (host.final_states) {
      for_each_offset(host.final_states,
                      [&](std::int64_t offset) { largest_ = std::max(largest_, offset); });
      states_.assign(static_cast<std::size_t>(largest_ + 1), untouched);
    }
    std::vector<double> scratch(mambatile::detail::reference::conv1d_scratch(problem));
    mambatile::detail::reference::run_conv1d(problem, host, *this, scratch.data());
  }

  void out(std::int64_t b, std::int64_t l, std::int64_t c, double value) override {
    out_[static_cast<std::size_t>((b * host_.x.extent(1) + l) * host_.x.extent(2) + c)] = value;
  }

  void final_state(std::int64_t offset, std::int64_t c, double const* columns) override {
    auto const& states = host_.final_states;
    for (std::int64_t column = 0; column < problem_.state_len; ++column) {
      states_[static_cast<std::size_t>(offset + c * states.stride(states.rank - 2) +
                                       column * states.stride(states.rank - 1))] = columns[column];
    }
  }

  [[nodiscard]] std::vector<double> const& expected_out() const { return out_; }
  [[nodiscard]] double expected_state(std::int64_t offset) const {
    return states_[static_cast<std::size_t>(offset)];
  }

 private:
  conv1d_update_problem const& problem_;
  conv1d_update_arguments const& host_;
  std::int64_t largest_ = 0;
  std::vector<double> out_;
  std::vector<double> states_;  // by offset
};

bool same(double got, double want) { return got == want || (std::isnan(got) && std::isnan(want)); }

}  // namespace

conv1d_tensors::conv1d_tensors(conv1d_trial const& trial) : trial_(trial) {
  make_inputs();
  make_packing();
  make_states();
  make_slots();
  make_speculation();
  for (auto const* output : {&out, &final_states}) {
    if (*output) output->memory().allow(output->view());
  }
}

void conv1d_tensors::make_inputs() {
  auto const& problem = trial_.problem;
  auto const c = problem.channels;
  x = make_activations(trial_);
  out = make_activations(trial_);
  auto const normal = [&](test_tensor& tensor, char const* name, double scale) {
    auto stream = numbers(name);
    tensor.fill([&] { return scale * stream.normal(); });
  };
  normal(x, "x", 1.0);
  weight = test_tensor(problem.weight, {c, problem.width});
  normal(weight, "weight", 0.5);
  if (problem.has_bias) {
    bias = test_tensor(problem.bias, {c});
    normal(bias, "bias", 0.3);
  }
}

void conv1d_tensors::make_packing() {
  auto const& problem = trial_.problem;
  auto const b = problem.max_batch;
  auto const l = problem.max_seqlen;
  if (problem.pack == packing::cu_seqlens) {
    std::vector<std::int64_t> ends = {0};
    for (auto const length : trial_.lengths) ends.push_back(ends.back() + length);
    cu_seqlens = indices({static_cast<std::int64_t>(ends.size())}, ends);
    // Tokens beyond the last sequence are not to be read.
    fill_nan(slice(x.image(), 1, ends.back(), l - ends.back()));
  }
  if (problem.pack == packing::seq_idx) {
    std::vector<std::int64_t> ids;
    for (std::int64_t row = 0; row < b; ++row) {
      std::int64_t id = row;
      std::size_t which = static_cast<std::size_t>(row);
      std::int64_t left = trial_.lengths[which % trial_.lengths.size()];
      for (std::int64_t token = 0; token < l; ++token) {
        while (left == 0) {
          id += 2;
          left = trial_.lengths[++which % trial_.lengths.size()];
        }
        --left;
        bool const is_padding =
            trial_.padding_every != 0 && (token + row) % trial_.padding_every == 0;
        ids.push_back(is_padding ? -1 : id);
        if (is_padding) fill_nan(slice(slice(x.image(), 0, row, 1), 1, token, 1));
      }
    }
    seq_idx = indices({b, l}, ids);
  }
}

void conv1d_tensors::make_states() {
  auto const& problem = trial_.problem;
  auto const rows = trial_.rows();
  auto const c = problem.channels;
  auto const length = problem.state_len;
  auto const columns =
      problem.per_token_target ? std::max<std::int64_t>(problem.max_targets, 0) : 0;
  auto const slots = 2 * rows * std::max({columns, trial_.stored, std::int64_t{1}}) + 3;
  auto const make = [&](bool has_slots, bool per_token, std::int64_t tokens) {
    std::vector<std::int64_t> shape = {has_slots ? slots : rows};
    if (per_token && !has_slots) shape.push_back(tokens);
    shape.insert(shape.end(), {c, length});
    return test_tensor(problem.state, shape, trial_.states);
  };
  if (problem.has_initial_states) {
    initial_states = make(problem.has_state_source, problem.per_token_source, trial_.stored);
    auto stream = numbers("initial_states");
    // Of the io type's values, as raw inputs are.
    initial_states.fill([&] {
      double const value = stream.normal();
      return problem.io == dtype::bf16  ? static_cast<double>(float{bfloat16(float(value))})
             : problem.io == dtype::f16 ? static_cast<double>(float{float16(float(value))})
                                        : value;
    });
  }
  if (!problem.has_final_states) return;
  final_states = trial_.in_place
                     ? initial_states
                     : make(problem.has_state_target, problem.per_token_target, columns);
}

void conv1d_tensors::make_slots() {
  auto const& problem = trial_.problem;
  auto const rows = trial_.rows();
  auto const pool = std::max(problem.has_state_source ? initial_states.view().extent(0) : 0,
                             problem.has_state_target ? final_states.view().extent(0) : 0);
  // Slot s of this order: targets from the front, sources from the back, so that none meet.
  std::vector<std::int64_t> order(static_cast<std::size_t>(pool));
  std::iota(order.begin(), order.end(), 0);
  auto stream = numbers("slots");
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(stream.index(static_cast<std::int64_t>(i)))]);
  }
  auto const table = [&](bool per_token, std::int64_t columns, std::int64_t none_at,
                         bool from_back) {
    std::vector<std::int64_t> slots;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        auto const next = slots.size();
        bool const is_none = row % 4 == none_at || row % 4 == 3 ||
                             (per_token && from_back == false && (row + column) % 5 == 4);
        slots.push_back(is_none ? -1 : order[from_back ? order.size() - 1 - next : next]);
      }
    }
    return per_token ? indices({rows, columns}, slots) : indices({rows}, slots);
  };
  if (problem.has_state_target) {
    state_target = table(problem.per_token_target,
                         problem.per_token_target ? problem.max_targets : 1, 2, false);
  }
  if (problem.has_state_source) {
    bool const shares_slots = trial_.in_place && !problem.per_token_source &&
                              problem.has_state_target && !problem.per_token_target;
    // In one pool, each row steps within its own slot.
    state_source = shares_slots ? state_target
                                : table(problem.per_token_source,
                                        problem.per_token_source ? trial_.stored : 1, 1, true);
    // What no row reads is NaN.
    std::vector<bool> is_read(static_cast<std::size_t>(initial_states.view().extent(0)));
    for (auto const slot : values(state_source.image())) {
      if (slot >= 0) is_read[static_cast<std::size_t>(slot)] = true;
    }
    for (std::size_t slot = 0; slot < is_read.size(); ++slot) {
      if (!is_read[slot]) {
        fill_nan(slice(initial_states.image(), 0, static_cast<std::int64_t>(slot), 1));
      }
    }
  }
}

void conv1d_tensors::make_speculation() {
  auto const& problem = trial_.problem;
  if (!problem.has_num_accepted && !problem.circular) return;
  auto const rows = trial_.rows();
  auto stream = numbers("speculation");
  std::vector<std::int64_t> accepted, previous, ring;
  for (std::int64_t row = 0; row < rows; ++row) {
    auto const before = problem.has_num_previous ? 1 + stream.index(4)
                        : problem.pack == packing::cu_seqlens
                            ? trial_.lengths[static_cast<std::size_t>(row)]
                            : problem.max_seqlen;
    // A state per token is picked by its column; where tokens are counted back, there is a limit.
    bool const counts_back =
        !problem.per_token_source || problem.has_num_previous || problem.circular;
    std::int64_t const least = problem.per_token_source && !problem.source_has_start ? 1 : 0;
    auto const most_back = problem.per_token_source
                               ? before - least
                               : std::min(before, problem.state_len - problem.width + 1);
    auto count = counts_back ? before - stream.index(most_back + 1) : trial_.stored;
    if (problem.per_token_source) count = std::min(count, least + stream.index(trial_.stored));
    accepted.push_back(count);
    previous.push_back(before);
    ring.push_back(before + stream.index(20));
  }
  if (problem.has_num_accepted) num_accepted = indices({rows}, accepted);
  if (problem.has_num_previous) num_previous = indices({rows}, previous);
  if (problem.circular) cache_seqlens = indices({rows}, ring);
}

std::vector<test_tensor const*> conv1d_tensors::all() const {
  std::vector<test_tensor const*> tensors;
  for (auto const* each :
       {&x, &weight, &bias, &initial_states, &cu_seqlens, &seq_idx, &state_source, &state_target,
        &cache_seqlens, &num_accepted, &num_previous, &out, &final_states}) {
    if (*each) tensors.push_back(each);
  }
  return tensors;
}

conv1d_update_arguments conv1d_tensors::arguments() const {
  conv1d_update_arguments result{x.view(),
                                 weight.view(),
                                 bias.view(),
                                 initial_states.view(),
                                 cu_seqlens.view(),
                                 seq_idx.view(),
                                 state_source.view(),
                                 state_target.view(),
                                 cache_seqlens.view(),
                                 num_accepted.view(),
                                 num_previous.view(),
                                 out.view(),
                                 final_states.view()};
  if (!trial_.token_axis) {
    result.x = without_token_axis(result.x);
    result.out = without_token_axis(result.out);
  }
  return result;
}

conv1d_update_arguments conv1d_tensors::images() const {
  return {x.image(),
          weight.image(),
          bias.image(),
          initial_states.image(),
          cu_seqlens.image(),
          seq_idx.image(),
          state_source.image(),
          state_target.image(),
          cache_seqlens.image(),
          num_accepted.image(),
          num_previous.image(),
          out.image(),
          final_states.image()};
}

void conv1d_tensors::upload() const {
  for (auto const* tensor : all()) tensor->upload();
}
void conv1d_tensors::download() const {
  for (auto const* tensor : all()) tensor->download();
}
void conv1d_tensors::check_guards() const {
  for (auto const* tensor : all()) CHECK(tensor->memory().stray_write() == std::string());
}
bool conv1d_tensors::outputs_are_untouched() const {
  return out.memory().is_untouched() && (!final_states || final_states.memory().is_untouched());
}
std::vector<std::uint32_t> conv1d_tensors::output_bits() const {
  auto all_bits = bits(out.result());
  if (final_states) {
    auto const more = bits(final_states.result());
    all_bits.insert(all_bits.end(), more.begin(), more.end());
  }
  return all_bits;
}

conv1d_arguments without_speculation(conv1d_update_arguments const& arguments) {
  return {.x = arguments.x,
          .weight = arguments.weight,
          .bias = arguments.bias,
          .initial_states = arguments.initial_states,
          .cu_seqlens = arguments.cu_seqlens,
          .seq_idx = arguments.seq_idx,
          .state_source = arguments.state_source,
          .state_target = arguments.state_target,
          .cache_seqlens = arguments.cache_seqlens,
          .out = arguments.out,
          .final_states = arguments.final_states};
}

conv1d_problem without_speculation(conv1d_update_problem const& problem) {
  return {.max_batch = problem.max_batch,
          .max_seqlen = problem.max_seqlen,
          .max_sequences = problem.max_sequences,
          .channels = problem.channels,
          .width = problem.width,
          .state_len = problem.state_len,
          .io = problem.io,
          .weight = problem.weight,
          .bias = problem.bias,
          .state = problem.state,
          .act = problem.act,
          .has_bias = problem.has_bias,
          .has_initial_states = problem.has_initial_states,
          .has_final_states = problem.has_final_states,
          .has_state_source = problem.has_state_source,
          .has_state_target = problem.has_state_target,
          .circular = problem.circular,
          .pack = problem.pack,
          .threads = problem.threads};
}

void execute(conv1d_trial const& trial, conv1d_update_arguments const& arguments) {
  auto problem = trial.problem;
  if (problem.pack != packing::cu_seqlens) {
    problem.max_batch += trial.spare_capacity;
  } else {
    problem.max_sequences += trial.spare_capacity;
  }
  problem.max_seqlen += trial.spare_capacity;
  if (trial.is_update) {
    execute(problem, arguments, trial.threads);
  } else {
    execute(without_speculation(problem), without_speculation(arguments), trial.threads);
  }
}

conv1d_tensors run_conv1d_trial(conv1d_trial const& trial) {
  INFO((trial.is_update ? to_string(trial.problem) : to_string(without_speculation(trial.problem)))
       << ", seed " << trial.seed);
  conv1d_tensors tensors(trial);
  tensors.upload();
  execute(trial, tensors.arguments());
  tensors.download();
  tensors.check_guards();
  return tensors;
}

void check_conv1d(conv1d_trial const& trial) {
  auto const tensors = run_conv1d_trial(trial);
  auto const host = tensors.images();
  INFO((trial.is_update ? to_string(trial.problem) : to_string(without_speculation(trial.problem)))
       << ", layout " << static_cast<int>(trial.layout) << ", seed " << trial.seed);
  expectation const expected(trial.problem, host);

  auto const got = values(tensors.out.result());
  auto const got_bits = bits(tensors.out.result());
  auto const old_bits = bits(const_tensor_view(tensors.out.image()));
  evaluation::error_accumulator errors(1);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    auto const want = expected.expected_out()[i];
    if (want == untouched) {
      wrong += got_bits[i] != old_bits[i];
    } else if (want == 0.0) {
      wrong += got[i] != 0.0;
    } else {
      errors.add(0, got[i], want);
    }
  }
  CHECK(wrong == 0);
  auto const error = errors.result();
  auto const limits = evaluation::limits_of_conv1d(trial.problem.io);
  INFO("out: error " << error.slice << " (limit " << limits.slice << "), peak " << error.peak
                     << " (limit " << limits.peak << "), finite " << error.finite);
  CHECK(error.within(limits));

  if (!tensors.final_states) return;
  std::int64_t wrong_states = 0;
  auto const states = tensors.final_states.result();
  auto const before = const_tensor_view(tensors.final_states.image());
  for_each_offset(states, [&](std::int64_t offset) {
    auto const want = expected.expected_state(offset);
    auto const is = test_tensor::get(states, offset);
    wrong_states += !same(is, want == untouched ? test_tensor::get(before, offset) : want);
  });
  CHECK(wrong_states == 0);
}

}  // namespace mambatile::testing
