#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/matmul.hpp>
#include <mambatile/take_rows.hpp>

#include "support/execute.hpp"
#include "support/tested_backend.hpp"

// Products against sums in f64. Values are small integers over 8, exact in every type.

namespace mambatile::testing {
namespace {

template <class Element>
std::vector<Element> values(std::int64_t count, std::uint32_t seed) {
  std::vector<Element> result;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    result.push_back(Element(static_cast<float>(static_cast<int>(seed >> 24U) - 128) / 8.0F));
  }
  return result;
}

template <class X, class Weight, class Out>
void check_product(std::int64_t rows, std::int64_t inner, std::int64_t outputs, bool options,
                   double limit) {
  INFO("rows " << rows << ", in " << inner << ", out " << outputs << ", options " << options);
  std::int64_t const pitch = inner + 3;  // rows of x lie in a wider buffer
  auto x = values<X>(rows * pitch, 1);
  auto weight = values<Weight>(outputs * inner, 2);
  auto bias = values<Weight>(outputs, 3);
  auto scale = values<float>(outputs, 4);
  auto out = values<Out>(rows * outputs, 5);
  auto const before = out;
  matmul_arguments arguments;
  arguments.x = make_view(x.data(), {rows, inner}, {pitch, 1});
  arguments.weight = make_view(weight.data(), {outputs, inner});
  arguments.out = make_view(out.data(), {rows, outputs});
  matmul_options chosen;
  if (options) {
    arguments.bias = make_view(bias.data(), {outputs});
    arguments.column_scale = make_view(scale.data(), {outputs});
    chosen.input_scale = 0.5F;
    chosen.accumulate = true;
  }
  execute(make_problem(arguments, chosen), arguments);
  double difference = 0;
  double norm = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      double sum = 0;
      for (std::int64_t i = 0; i < inner; ++i) {
        sum += static_cast<double>(static_cast<float>(x[static_cast<std::size_t>(r * pitch + i)])) *
               static_cast<double>(
                   static_cast<float>(weight[static_cast<std::size_t>(o * inner + i)]));
      }
      auto const at = static_cast<std::size_t>(r * outputs + o);
      if (options) {
        auto const column = static_cast<std::size_t>(o);
        sum = (0.5 * sum + static_cast<double>(static_cast<float>(bias[column]))) *
                  static_cast<double>(scale[column]) +
              static_cast<double>(static_cast<float>(before[at]));
      }
      double const error = static_cast<double>(static_cast<float>(out[at])) - sum;
      difference += std::isnan(error) ? 1e300 : error * error;
      norm += sum * sum;
    }
  }
  CHECK(std::sqrt(difference) <= limit * std::sqrt(norm));
}

TEST_CASE("matmul: agrees with sums in f64", "[agreement]") {
  if (!is_host_backend()) SKIP("this backend does not have the operator");
  for (std::int64_t const rows : {1, 3, 5, 8, 9, 13, 100}) {
    for (std::int64_t const inner : {1, 31, 512, 513, 1100}) {
      for (bool const options : {false, true}) {
        check_product<float, float, float>(rows, inner, 45, options, 1e-6);
      }
    }
  }
  for (std::int64_t const rows : {2, 17}) {
    check_product<float, bfloat16, float>(rows, 77, 67, true, 1e-6);
    check_product<bfloat16, bfloat16, bfloat16>(rows, 700, 33, true, 4e-3);
    check_product<float16, float16, float>(rows, 100, 130, false, 1e-6);
    check_product<float, float16, bfloat16>(rows, 64, 1, true, 4e-3);
  }
}

TEST_CASE("matmul: sizes of 0", "[agreement]") {
  if (!is_host_backend()) SKIP("this backend does not have the operator");
  std::vector<float> out = {5, 5};
  matmul_arguments arguments;
  arguments.x = make_view(static_cast<float const*>(nullptr), {2, 0});
  arguments.weight = make_view(static_cast<float const*>(nullptr), {1, 0});
  arguments.out = make_view(out.data(), {2, 1});
  execute(make_problem(arguments), arguments);
  CHECK(out == std::vector<float>{0, 0});
}

TEST_CASE("take_rows: takes and converts", "[agreement]") {
  if (!is_host_backend()) SKIP("this backend does not have the operator");
  auto source = values<bfloat16>(5 * 37, 6);
  std::vector<std::int32_t> const index = {4, 0, 4};
  std::vector<float> out(3 * 37, std::nanf(""));
  execute(make_problem(take_rows_arguments{make_view(source.data(), {5, 37}),
                                           make_view(index.data(), {3}),
                                           make_view(out.data(), {3, 37})}),
          take_rows_arguments{make_view(source.data(), {5, 37}), make_view(index.data(), {3}),
                              make_view(out.data(), {3, 37})});
  std::size_t wrong = 0;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t i = 0; i < 37; ++i) {
      auto const from = static_cast<std::size_t>(index[row]) * 37 + i;
      if (out[row * 37 + i] != static_cast<float>(source[from])) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace mambatile::testing
