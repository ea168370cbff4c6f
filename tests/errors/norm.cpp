#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/norm.hpp>

#include "support/execute.hpp"
#include "support/norm_trial.hpp"
#include "support/refusals.hpp"
#include "support/tested_backend.hpp"

// Rules of gated_rms_norm: the message, and that nothing was written.

namespace mambatile::testing {
namespace {

using words = std::vector<std::string>;

norm_trial full_trial() {
  norm_trial trial;
  trial.outer = {2, 3};
  trial.problem = {.max_rows = 6, .channels = 24, .group_size = 8, .has_z = true, .has_bias = true};
  return trial;
}

TEST_CASE("norm: problems that break a rule", "[errors]") {
  struct rule {
    std::function<void(gated_rms_norm_problem&)> set;
    words expected;
  };
  std::vector<rule> const rules = {
      {[](auto& p) { p.max_rows = -1; }, {"max_rows = -1", "negative"}},
      {[](auto& p) { p.channels = -8; }, {"channels = -8", "negative"}},
      {[](auto& p) { p.group_size = 7; }, {"group_size = 7", "channels = 24", "divide"}},
      {[](auto& p) { p.group_size = -8; }, {"group_size = -8", "negative"}},
      {[](auto& p) { p.threads = -1; }, {"threads = -1", "negative"}},
      {[](auto& p) { p.io = dtype::i32; }, {"io = i32"}},
      {[](auto& p) { p.weight = dtype::f16; }, {"weight = f16", "io type f32"}},
      {[](auto& p) { p.bias = dtype::bf16; }, {"bias = bf16", "io type f32"}},
      {[](auto& p) { p.eps = -1e-5F; }, {"eps = -1e-05", ">= 0"}},
      {[](auto& p) { p.eps = std::nanf(""); }, {"eps = nan", ">= 0"}},
      {[](auto& p) { p.eps = std::numeric_limits<float>::infinity(); }, {"eps = inf", "finite"}},
  };
  for (auto const& each : rules) {
    auto problem = full_trial().problem;
    each.set(problem);
    check_refused(problem, each.expected);
  }
}

template <class Exception = invalid_argument>
void check_refused_call(std::function<void(gated_rms_norm_arguments&)> const& spoil,
                        words const& expected) {
  auto const trial = full_trial();
  norm_tensors const tensors(trial);
  tensors.upload();
  auto arguments = tensors.arguments();
  spoil(arguments);
  auto const message = message_of<Exception>([&] { execute(trial.problem, arguments); });
  check_message(message, gated_rms_norm_problem::operator_name, expected);
  tensors.download();
  CHECK(tensors.out.memory().is_untouched());
}

TEST_CASE("norm: arguments that break a rule", "[errors]") {
  check_refused_call([](auto& a) { a.x = {}; }, {"x is absent"});
  check_refused_call([](auto& a) { a.z = {}; }, {"z is absent", "has_z = true"});
  check_refused_call([](auto& a) { a.weight = {}; }, {"weight is absent"});
  check_refused_call([](auto& a) { a.bias = {}; }, {"bias is absent", "has_bias = true"});
  check_refused_call([](auto& a) { a.out = {}; }, {"out is absent"});
  check_refused_call([](auto& a) { a.x.rank = 1; }, {"x has shape", "(rows, channels)"});
  check_refused_call([](auto& a) { a.z.extents[1] = 2; }, {"z has shape (2, 2, 24)", "(2, 3, 24)"});
  check_refused_call([](auto& a) { a.weight.extents[0] = 23; },
                     {"weight has shape (23)", "(channels) = (24)"});
  check_refused_call([](auto& a) { a.z.type = dtype::f16; }, {"z has type f16", "expected f32"});
  check_refused_call([](auto& a) { a.out.data = nullptr; }, {"out has shape", "null"});
  check_refused_call([](auto& a) { a.out.strides[1] = 3; }, {"out", "overlap each other"});
  check_refused_call([](auto& a) { a.x.data = a.out.data; }, {"out overlaps x"});
  check_refused_call(
      [](auto& a) {
        a.x.extents[0] = a.z.extents[0] = a.out.extents[0] = 4;
        a.x.extents[1] = a.z.extents[1] = a.out.extents[1] = 2;
      },
      {"rows = 8", "max_rows = 6"});
  // So many rows of no channels that their number is beyond 64 bits.
  check_refused_call(
      [](auto& a) {
        for (auto* extents : {&a.x.extents, &a.z.extents, &a.out.extents}) {
          *extents = {std::int64_t{1} << 40, std::int64_t{1} << 40, 0};
        }
      },
      {"has shape"});
  check_refused_call<unsupported>([](auto& a) { a.x.strides[2] = 2; },
                                  {"x has stride 2", "last axis"});
  check_refused_call<unsupported>([](auto& a) { a.out.strides[2] = -1; },
                                  {"out has stride -1", "last axis"});
  device const elsewhere{is_host_backend() ? device_kind::cuda : device_kind::host, 0};
  check_refused_call([&](auto& a) { a.bias.where = elsewhere; }, {"bias is on device"});
}

}  // namespace
}  // namespace mambatile::testing
