#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/scan.hpp>

#include "support/execute.hpp"
#include "support/tested_backend.hpp"

namespace mambatile::testing {
namespace {

// One step so large that a running sum of decays keeps no digit of the steps behind it: what comes
// after it must be as if the sequence began there.
TEST_CASE("scan: a huge step forgets everything and costs the next steps nothing", "[properties]") {
  if (!is_host_backend()) SKIP("written for memory on the host");
  constexpr std::int64_t seqlen = 90;
  constexpr std::int64_t reset = 20;
  constexpr std::int64_t headdim = 5;
  constexpr std::int64_t dstate = 7;
  for (float const huge : {1e5F, 1e6F, 3e7F, 1e9F, 1e30F}) {
    INFO("step " << huge);
    std::vector<float> x, dt, B, C;
    for (std::int64_t t = 0; t < seqlen; ++t) {
      auto const wave = [&](double phase) {
        return static_cast<float>(std::sin(0.7 * static_cast<double>(t) + phase));
      };
      dt.push_back(t == reset ? huge : 0.01F + 0.02F * std::fabs(wave(0.3)));
      // Its own input would be huge too.
      for (std::int64_t p = 0; p < headdim; ++p) {
        x.push_back(t == reset ? 0.0F : wave(static_cast<double>(p)));
      }
      for (std::int64_t n = 0; n < dstate; ++n) {
        B.push_back(wave(0.5 + static_cast<double>(n)));
        C.push_back(wave(0.9 * static_cast<double>(n)));
      }
    }
    std::vector<float> const A = {-3.0F};
    auto const run = [&](std::int64_t first, std::vector<float>& state) {
      auto const count = seqlen - first;
      std::vector<float> out(static_cast<std::size_t>(count * headdim));
      state.assign(headdim * dstate, std::nanf(""));
      scan_arguments arguments;
      arguments.x = make_view(x.data() + first * headdim, {1, count, 1, headdim});
      arguments.dt = make_view(dt.data() + first, {1, count, 1});
      arguments.A = make_view(A.data(), {1});
      arguments.B = make_view(B.data() + first * dstate, {1, count, 1, dstate});
      arguments.C = make_view(C.data() + first * dstate, {1, count, 1, dstate});
      arguments.out = make_view(out.data(), {1, count, 1, headdim});
      arguments.final_states = make_state_view(state.data(), 1, 1, headdim, dstate);
      execute(make_problem(arguments), arguments);
      return out;
    };
    std::vector<float> whole_state;
    std::vector<float> rest_state;
    auto const whole = run(0, whole_state);
    auto const rest = run(reset + 1, rest_state);
    auto const error = [](float const* got, std::vector<float> const& want) {
      double difference = 0;
      double norm = 0;
      for (std::size_t i = 0; i < want.size(); ++i) {
        double const each = static_cast<double>(got[i]) - static_cast<double>(want[i]);
        difference += std::isnan(each) ? 1e300 : each * each;
        norm += static_cast<double>(want[i]) * static_cast<double>(want[i]);
      }
      return std::sqrt(difference / norm);
    };
    CHECK(error(whole.data() + (reset + 1) * headdim, rest) <= 2e-6);
    CHECK(error(whole_state.data(), rest_state) <= 4e-6);
  }
}

}  // namespace
}  // namespace mambatile::testing
