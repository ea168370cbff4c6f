#include "vector_math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "convert.hpp"

// Largest errors over sweeps of the argument, in units in the last place of the exact result.

namespace mambatile::kokkos {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float smallest_normal = std::numeric_limits<float>::min();

double ulp_of(double exact) {
  float const magnitude = std::max(static_cast<float>(std::abs(exact)), smallest_normal);
  return static_cast<double>(std::nextafter(magnitude, infinity)) - static_cast<double>(magnitude);
}

struct worst {
  double ulps = 0.0;
  float at = 0.0F;
};

template <class Ours, class Exact>
worst sweep(std::vector<float> const& arguments, Ours const& ours, Exact const& exact) {
  worst result;
  for (std::size_t i = 0; i + pack_width <= arguments.size(); i += pack_width) {
    float got[pack_width];
    store(got, ours(load(&arguments[i])));
    for (std::size_t lane = 0; lane < pack_width; ++lane) {
      float const x = arguments[i + lane];
      double const want = exact(static_cast<double>(x));
      double const error = std::abs(static_cast<double>(got[lane]) - want) / ulp_of(want);
      if (!(error <= result.ulps)) result = {error, x};
    }
  }
  return result;
}

// Evenly over [low, high], and around 0 over all exponents.
std::vector<float> arguments_in(float low, float high) {
  std::vector<float> result;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> even(low, high);
  for (int i = 0; i < 200000; ++i) result.push_back(even(random));
  for (std::uint32_t bits = 0; bits < 0x7f800000U; bits += 9973) {
    float const x = std::bit_cast<float>(bits);
    for (float const signed_x : {x, -x}) {
      if (signed_x >= low && signed_x <= high) result.push_back(signed_x);
    }
  }
  result.insert(result.end(), {low, high});
  result.resize(result.size() / pack_width * pack_width);
  return result;
}

float first_lane(pack const& value) {
  float lanes[pack_width];
  store(lanes, value);
  return lanes[0];
}

double exact_softplus(double r) {
  return r > 0 ? r + std::log1p(std::exp(-r)) : std::log1p(std::exp(r));
}

}  // namespace

TEST_CASE("exp is within 1.5 ulp where results are normal numbers") {
  auto const found = sweep(
      arguments_in(-87.33F, 88.72F), [](pack const& x) { return kokkos::exp(x); },
      [](double x) { return std::exp(x); });
  INFO("worst at " << found.at << ": " << found.ulps << " ulp");
  CHECK(found.ulps <= 1.5);
}

TEST_CASE("exp ends in 0, infinity and NaN") {
  CHECK(first_lane(kokkos::exp(pack(-87.4F))) == 0.0F);
  CHECK(first_lane(kokkos::exp(pack(-1e30F))) == 0.0F);
  CHECK(first_lane(kokkos::exp(pack(-infinity))) == 0.0F);
  CHECK(first_lane(kokkos::exp(pack(88.73F))) == infinity);
  CHECK(first_lane(kokkos::exp(pack(infinity))) == infinity);
  CHECK(std::isnan(first_lane(kokkos::exp(pack(std::nanf(""))))));
  CHECK(first_lane(kokkos::exp(pack(0.0F))) == 1.0F);
}

TEST_CASE("log1p is within 2 ulp on [0, 1]") {
  auto const found = sweep(
      arguments_in(0.0F, 1.0F), [](pack const& u) { return log1p_unit(u); },
      [](double u) { return std::log1p(u); });
  INFO("worst at " << found.at << ": " << found.ulps << " ulp");
  CHECK(found.ulps <= 2.0);
}

TEST_CASE("softplus is within 4 ulp, also where it is tiny") {
  auto const found = sweep(
      arguments_in(-87.3F, 100.0F), [](pack const& r) { return softplus(r); }, exact_softplus);
  INFO("worst at " << found.at << ": " << found.ulps << " ulp");
  CHECK(found.ulps <= 4.0);
  CHECK(first_lane(softplus(pack(-100.0F))) == 0.0F);
  CHECK(first_lane(softplus(pack(1e30F))) == 1e30F);
  CHECK(std::isnan(first_lane(softplus(pack(std::nanf(""))))));
}

TEST_CASE("silu is within 4 ulp") {
  auto const found = sweep(
      arguments_in(-80.0F, 80.0F), [](pack const& z) { return silu(z); },
      [](double z) { return z / (1.0 + std::exp(-z)); });
  INFO("worst at " << found.at << ": " << found.ulps << " ulp");
  CHECK(found.ulps <= 4.0);
  CHECK(first_lane(silu(pack(-200.0F))) == 0.0F);
  CHECK(first_lane(silu(pack(200.0F))) == 200.0F);
}

}  // namespace mambatile::kokkos
