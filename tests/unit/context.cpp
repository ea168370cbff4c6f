#include <mambatile/context.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

namespace mambatile::testing {
namespace {

struct small_scan {
  std::vector<float> x, dt, A, B, C, out;
  scan_arguments arguments;

  explicit small_scan(std::int64_t seqlen)
      : x(static_cast<std::size_t>(seqlen), 1.0F),
        dt(static_cast<std::size_t>(seqlen), 1.0F),
        A(1, -1.0F),
        B(static_cast<std::size_t>(seqlen), 1.0F),
        C(static_cast<std::size_t>(seqlen), 1.0F),
        out(static_cast<std::size_t>(seqlen), 0.0F) {
    arguments.x = make_view(x.data(), {1, seqlen, 1, 1});
    arguments.dt = make_view(dt.data(), {1, seqlen, 1});
    arguments.A = make_view(A.data(), {1});
    arguments.B = make_view(B.data(), {1, seqlen, 1, 1});
    arguments.C = make_view(C.data(), {1, seqlen, 1, 1});
    arguments.out = make_view(out.data(), {1, seqlen, 1, 1});
  }
};

TEST_CASE("context: a short call plans, runs and reuses", "[unit]") {
  context here(find_backend("reference"));
  CHECK(here.served_by().name() == "reference");
  CHECK(here.where() == device{});
  small_scan scan(3);
  chunk_scan(here, scan.arguments);
  // S_t = e^-1 S_{t-1} + 1.
  double state = 0;
  for (float const got : scan.out) {
    state = std::exp(-1.0) * state + 1.0;
    CHECK(std::fabs(static_cast<double>(got) - state) < 1e-6);
  }
  auto const problem = make_problem(scan.arguments);
  auto const& first = here.plan(problem);
  CHECK(first.problem() == problem);
  CHECK(&here.plan(problem) == &first);
  chunk_scan(here, scan.arguments, {.dt_softplus = true});
  CHECK(here.plan(problem).problem() == problem);
}

TEST_CASE("context: a workspace grows and stays", "[unit]") {
  context here(find_backend("reference"));
  auto const small = here.workspace(100, {});
  CHECK(small.bytes >= 100);
  CHECK(here.workspace(50, {}).data == small.data);
  auto const large = here.workspace(100000, {});
  CHECK(large.bytes >= 100000);
  CHECK(reinterpret_cast<std::uintptr_t>(large.data) % workspace_alignment == 0);
  CHECK(here.workspace(100, {}).data == large.data);
  here.clear();
  CHECK(here.workspace(10, {}).bytes >= 10);
}

TEST_CASE("context: more problems than it keeps", "[unit]") {
  context here(find_backend("reference"));
  for (std::int64_t seqlen = 1; seqlen <= 100; ++seqlen) {
    small_scan scan(seqlen);
    chunk_scan(here, scan.arguments);
    CHECK(scan.out.back() > 0.99F);
  }
  small_scan again(1);
  chunk_scan(here, again.arguments);
  CHECK(again.out[0] == 1.0F);
}

TEST_CASE("context: moves", "[unit]") {
  context first(find_backend("reference"));
  small_scan scan(2);
  chunk_scan(first, scan.arguments);
  context second = std::move(first);
  chunk_scan(second, scan.arguments);
  first = std::move(second);
  chunk_scan(first, scan.arguments);
  CHECK(scan.out[0] == 1.0F);
}

}  // namespace
}  // namespace mambatile::testing
