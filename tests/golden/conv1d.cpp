#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/conv1d.hpp>

#include "evaluation/conv_norm_tolerances.hpp"
#include "evaluation/tensor_error.hpp"
#include "golden/golden_file.hpp"
#include "support/execute.hpp"
#include "support/test_tensor.hpp"

// Files made by the published implementations, evaluated in f64. They hold x as (b, c, l).

namespace mambatile::testing {
namespace {

template <class Void>
basic_tensor_view<Void> swap_axes(basic_tensor_view<Void> view, int first, int second) {
  std::swap(view.extents[static_cast<std::size_t>(first)],
            view.extents[static_cast<std::size_t>(second)]);
  std::swap(view.strides[static_cast<std::size_t>(first)],
            view.strides[static_cast<std::size_t>(second)]);
  return view;
}

// (steps, ...) at one step.
template <class Void>
basic_tensor_view<Void> at_step(basic_tensor_view<Void> view, std::int64_t step) {
  view = slice(view, 0, step, 1);
  for (int axis = 1; axis < view.rank; ++axis) {
    view.extents[static_cast<std::size_t>(axis - 1)] = view.extents[static_cast<std::size_t>(axis)];
    view.strides[static_cast<std::size_t>(axis - 1)] = view.strides[static_cast<std::size_t>(axis)];
  }
  --view.rank;
  return view;
}

test_tensor uploaded(test_tensor tensor) {
  tensor.upload();
  return tensor;
}

test_tensor output(dtype type, const_tensor_view const& like) {
  test_tensor tensor(type, {like.extents.begin(), like.extents.begin() + like.rank});
  tensor.memory().allow(tensor.view());
  return uploaded(std::move(tensor));
}

void check_out(const_tensor_view const& got, const_tensor_view const& want, dtype io) {
  auto const error = evaluation::compare(got, want, 0);
  auto const limits = evaluation::limits_of_conv1d(io);
  INFO("out: error " << error.slice << " (limit " << limits.slice << "), peak " << error.peak
                     << " (limit " << limits.peak << ")");
  CHECK(error.within(limits));
}

void check_exact(const_tensor_view const& got, const_tensor_view const& want) {
  CHECK(values(got) == values(want));
}

activation act_of(golden_file const& file) {
  return file.text("activation") == "silu" ? activation::silu : activation::none;
}

// `channels_inner`: x is brought into the fast order first.
test_tensor activations(golden_file const& file, dtype io, bool channels_inner) {
  auto const x = file.tensor("x", io);
  if (!channels_inner) return uploaded(test_tensor::copy_of(x.view()));
  return uploaded(test_tensor::copy_of(swap_axes(x.view(), x.view().rank - 2, x.view().rank - 1)));
}

void check_conv(std::filesystem::path const& path, dtype io, bool channels_inner) {
  INFO(path.filename().string() << ", io " << to_string(io) << ", channels innermost "
                                << channels_inner);
  golden_file const file(path);
  auto const upload = [&](char const* name, dtype type) {
    return uploaded(test_tensor::copy_of(file.tensor(name, type).view()));
  };
  auto const x = activations(file, io, channels_inner);
  auto const weight = upload("weight", dtype::f32), bias = upload("bias", dtype::f32),
             initial_states = upload("initial_states", io),
             cu_seqlens = upload("cu_seqlens", dtype::i32), seq_idx = upload("seq_idx", dtype::i32);
  auto const want = file.tensor("y", dtype::f32);
  auto const want_states = file.tensor("final_states", io);
  auto const in_file_order = [&](auto view) {
    return channels_inner ? swap_axes(view, 1, 2) : view;
  };
  auto const in_order = [&](auto view) { return channels_inner ? view : swap_axes(view, 1, 2); };
  auto const out = output(io, x.view());
  auto const final_states = output(io, want_states.view());
  conv1d_arguments const arguments{.x = in_order(const_tensor_view(x.view())),
                                   .weight = weight.view(),
                                   .bias = bias.view(),
                                   .initial_states = initial_states.view(),
                                   .cu_seqlens = cu_seqlens.view(),
                                   .seq_idx = seq_idx.view(),
                                   .state_source = {},
                                   .state_target = {},
                                   .cache_seqlens = {},
                                   .out = in_order(out.view()),
                                   .final_states = final_states.view()};
  execute(make_problem(arguments, {.act = act_of(file)}), arguments);
  out.download();
  final_states.download();
  check_out(in_file_order(out.result()), want.view(), io);
  check_exact(final_states.result(), want_states.view());
}

void check_conv_update(std::filesystem::path const& path, dtype io, bool channels_inner) {
  INFO(path.filename().string() << ", io " << to_string(io) << ", channels innermost "
                                << channels_inner);
  golden_file const file(path);
  auto const upload = [&](char const* name, dtype type) {
    return uploaded(test_tensor::copy_of(file.tensor(name, type).view()));
  };
  auto const x = activations(file, io, channels_inner);
  auto const weight = upload("weight", dtype::f32), bias = upload("bias", dtype::f32);
  auto const states = upload("conv_state", io);
  auto const first_cache_seqlens = file.tensor("cache_seqlens", dtype::i32);
  auto const want = file.tensor("y", dtype::f32);
  auto const out = output(io, x.view());
  auto const in_order = [&](auto view) { return channels_inner ? view : swap_axes(view, 1, 2); };
  for (std::int64_t step = 0; step < x.view().extent(0); ++step) {
    test_tensor cache_seqlens;
    auto const x_step = in_order(at_step(const_tensor_view(x.view()), step));
    if (first_cache_seqlens.view()) {
      cache_seqlens = test_tensor::copy_of(first_cache_seqlens.view());
      auto const first = values(first_cache_seqlens.view());
      std::size_t row = 0;
      cache_seqlens.fill(
          [&] { return first[row++] + static_cast<double>(step * x_step.extent(1)); });
      cache_seqlens.upload();
    }
    conv1d_update_arguments arguments;
    arguments.x = x_step;
    arguments.weight = weight.view();
    arguments.bias = bias.view();
    arguments.initial_states = states.view();
    arguments.cache_seqlens = cache_seqlens.view();
    arguments.out = in_order(at_step(out.view(), step));
    arguments.final_states = states.view();
    execute(make_problem(arguments, {.act = act_of(file)}), arguments);
  }
  out.download();
  states.download();
  auto const got = channels_inner ? swap_axes(out.result(), 2, 3) : out.result();
  check_out(got, want.view(), io);
  check_exact(states.result(), file.tensor("conv_state_out", io).view());
}

TEST_CASE("conv1d: golden files", "[golden]") {
  auto const files = golden_files("conv");
  CHECK(files.size() == 11);
  for (auto const& file : files) {
    for (auto const io : {dtype::f32, dtype::bf16, dtype::f16}) {
      for (bool const channels_inner : {true, false}) check_conv(file, io, channels_inner);
    }
  }
}

TEST_CASE("conv1d_update: golden files", "[golden]") {
  auto const files = golden_files("conv_update");
  CHECK(files.size() == 6);
  for (auto const& file : files) {
    for (auto const io : {dtype::f32, dtype::bf16, dtype::f16}) {
      for (bool const channels_inner : {true, false}) check_conv_update(file, io, channels_inner);
    }
  }
}

}  // namespace
}  // namespace mambatile::testing
