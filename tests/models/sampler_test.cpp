#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/errors.hpp>
#include <mambatile/sampler.hpp>

using namespace mambatile;

namespace {

constexpr auto not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr auto endless = std::numeric_limits<float>::infinity();

std::int32_t draw(sampling_options const& options, std::vector<float> const& logits) {
  return sampler(options)(logits);
}

// How often each id comes up.
template <std::size_t Ids>
std::array<double, Ids> shares(sampling_options const& options,
                               std::array<float, Ids> const& logits) {
  constexpr int draws = 40000;
  sampler choose(options);
  std::array<double, Ids> counts = {};
  for (int i = 0; i < draws; ++i) counts[static_cast<std::size_t>(choose(logits))] += 1.0 / draws;
  return counts;
}

}  // namespace

TEST_CASE("sampler: greedy", "[models]") {
  CHECK(draw({}, {1, 3, 2}) == 1);
  CHECK(draw({}, {1, 3, 3}) == 1);
  CHECK(draw({}, {not_a_number, -5, not_a_number}) == 1);
  CHECK(draw({}, {-endless, -endless}) == 0);
  CHECK(draw({}, {0, endless, 5}) == 1);
  CHECK(draw({.temperature = 1}, {0, endless, 5}) == 1);
  CHECK_THROWS_AS(draw({}, {}), invalid_argument);
  CHECK_THROWS_AS(draw({}, {not_a_number}), invalid_argument);
}

TEST_CASE("sampler: draws by probability", "[models]") {
  std::array<float, 4> const logits = {std::log(4.0F), std::log(1.0F), std::log(2.0F),
                                       std::log(3.0F)};
  // Three standard deviations of 40000 draws are 0.0075.
  auto const plain = shares({.temperature = 1, .seed = 5}, logits);
  CHECK(std::abs(plain[0] - 0.4) < 0.01);
  CHECK(std::abs(plain[1] - 0.1) < 0.01);
  CHECK(std::abs(plain[2] - 0.2) < 0.01);
  auto const sharp = shares({.temperature = 0.5F}, logits);
  CHECK(std::abs(sharp[0] - 16.0 / 30) < 0.01);
  auto const two = shares({.temperature = 1, .top_k = 2}, logits);
  CHECK(std::abs(two[0] - 4.0 / 7) < 0.01);
  CHECK(two[1] + two[2] == 0);
  // 0.4 alone does not reach 0.6; 0.4 + 0.3 does.
  auto const nucleus = shares({.temperature = 1, .top_p = 0.6F}, logits);
  CHECK(std::abs(nucleus[3] - 3.0 / 7) < 0.01);
  CHECK(nucleus[1] + nucleus[2] == 0);
  auto const beyond = shares({.temperature = 1, .top_k = 100}, logits);
  CHECK(beyond[1] > 0);
  // Very different logits neither overflow nor turn into NaN.
  auto const far = shares<3>({.temperature = 1e-3F}, {-1e30F, 1e30F, not_a_number});
  CHECK(far[1] > 0.9999);
}

TEST_CASE("sampler: a seed is a stream", "[models]") {
  std::array<float, 8> const logits = {};
  auto const stream = [&](std::uint64_t seed) {
    sampler choose({.temperature = 1, .seed = seed});
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(choose(logits));
    return ids;
  };
  CHECK(stream(1) == stream(1));
  CHECK(stream(1) != stream(2));
  CHECK(stream(0) != stream(std::numeric_limits<std::uint64_t>::max()));
}

TEST_CASE("sampler: refuses what means nothing", "[models]") {
  for (auto const& options : {sampling_options{.temperature = -1},
                              {.temperature = not_a_number},
                              {.temperature = endless},
                              {.top_k = -1},
                              {.top_p = 0},
                              {.top_p = 1.1F},
                              {.top_p = not_a_number}}) {
    CHECK_THROWS_AS(sampler(options), invalid_argument);
  }
}
