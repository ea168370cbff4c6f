// A host program with mambatile's kokkos backend as its guest. The first argument names what the
// program does with Kokkos; each runs in a process of its own, since Kokkos starts once. Silence
// and exit code 0 mean that the guest behaved.

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>

#include <mambatile/mambatile.hpp>

namespace {

using namespace mambatile;

void require(bool holds, std::string const& what) {
  if (holds) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  std::_Exit(1);
}

backend const& kokkos() { return find_backend("kokkos"); }

// A scan of a few heads, larger than one chunk.
struct work {
  static constexpr std::int64_t seqlen = 100;
  static constexpr std::int64_t heads = 3;
  static constexpr std::int64_t headdim = 5;
  static constexpr std::int64_t dstate = 4;

  std::vector<float> x = std::vector<float>(seqlen * heads * headdim, 0.5F);
  std::vector<float> dt = std::vector<float>(seqlen * heads, 0.1F);
  std::vector<float> A = std::vector<float>(heads, -1.0F);
  std::vector<float> B = std::vector<float>(seqlen * dstate, 1.0F);
  std::vector<float> out = std::vector<float>(seqlen * heads * headdim, std::nanf(""));
  scan_arguments arguments;

  work() {
    arguments.x = make_view(x.data(), {1, seqlen, heads, headdim});
    arguments.dt = make_view(dt.data(), {1, seqlen, heads});
    arguments.A = make_view(A.data(), {heads});
    arguments.B = make_view(B.data(), {1, seqlen, 1, dstate});
    arguments.C = make_view(B.data(), {1, seqlen, 1, dstate});
    arguments.out = make_view(out.data(), {1, seqlen, heads, headdim});
  }

  void check() const {
    double state = 0;
    for (std::int64_t l = 0; l < seqlen; ++l) {
      state = std::exp(-0.1F) * state + 0.1 * 0.5;
      auto const got = static_cast<double>(out[static_cast<std::size_t>(l * heads * headdim)]);
      require(std::fabs(got - dstate * state) < 1e-5, "the scan's result");
    }
  }

  void run(scan_plan const& plan) {
    auto const memory = plan.served_by().allocate(plan.where(), plan.workspace_bytes());
    plan.execute(arguments, memory.workspace());
    check();
  }
  void run() { run(kokkos().plan(make_problem(arguments))); }
};

template <class Action>
std::string unavailable(Action const& action) {
  try {
    action();
  } catch (backend_unavailable const& error) {
    return error.what();
  }
  require(false, "backend_unavailable was not thrown");
  return {};
}

bool contains(std::string const& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Destroyed after main, when Kokkos is gone.
std::optional<context> kept_context;
std::optional<scan_plan> kept_plan;
buffer kept_buffer;

void not_initialised() {
  require(kokkos().is_available().ok, "available before the first plan");
  require(!Kokkos::is_initialized(), "asking starts nothing");
  work().run();
  require(Kokkos::is_initialized(), "the first plan initialises");
  work().run();
}

void initialised_by_host() {
  Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
  require(kokkos().is_available().ok, "available");
  work().run();
  require(Kokkos::is_initialized() && !Kokkos::is_finalized(), "left alone");
  Kokkos::finalize();
}

void owned_by_host() {
  use_host_kokkos();
  auto const available = kokkos().is_available();
  require(!available.ok && contains(available.reason, "use_host_kokkos"), "the reason");
  auto const problem = make_problem(work().arguments);
  auto const message = unavailable([&] { (void)kokkos().plan(problem); });
  require(contains(message, "use_host_kokkos"), message);
  require(!kokkos().supports(problem).ok, "supports says no");
  require(kokkos().device_count() == 0, "no device");
  require(!Kokkos::is_initialized(), "not initialised behind the host's back");
  require(find_backend(device_kind::host).name() == "reference", "another backend serves the host");
  Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
  work().run();
  Kokkos::finalize();
}

void finalised() {
  Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
  Kokkos::finalize();
  auto const available = kokkos().is_available();
  require(!available.ok && contains(available.reason, "finalised"), "the reason");
  auto const message = unavailable([] { (void)kokkos().plan(make_problem(work().arguments)); });
  require(contains(message, "finalised"), message);
}

void finalised_after_plan() {
  Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
  work some;
  auto const plan = kokkos().plan(make_problem(some.arguments));
  auto const memory = kokkos().allocate({}, plan.workspace_bytes());
  Kokkos::finalize();
  auto const message = unavailable([&] { plan.execute(some.arguments, memory.workspace()); });
  require(contains(message, "finalised"), message);
  for (float const untouched : some.out) require(std::isnan(untouched), "out is untouched");
}

void kept_past_main() {
  work some;
  kept_context.emplace(kokkos());
  chunk_scan(*kept_context, some.arguments);
  some.check();
  kept_plan.emplace(kokkos().plan(make_problem(some.arguments)));
  kept_buffer = kokkos().allocate({}, 1000);
}

void kept_past_main_with_host() {
  Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
  kept_past_main();
  Kokkos::finalize();
}

struct behaviour {
  std::string_view name;
  void (*run)();
};

constexpr std::array behaviours = {
    behaviour{"not_initialised", not_initialised},
    behaviour{"initialised_by_host", initialised_by_host},
    behaviour{"owned_by_host", owned_by_host},
    behaviour{"finalised", finalised},
    behaviour{"finalised_after_plan", finalised_after_plan},
    behaviour{"kept_past_main", kept_past_main},
    behaviour{"kept_past_main_with_host", kept_past_main_with_host},
};

}  // namespace

int main(int count, char** words) {
  for (auto const& each : behaviours) {
    if (count == 2 && each.name == words[1]) {
      each.run();
      return 0;
    }
  }
  std::fprintf(stderr, "unknown behaviour\n");
  return 2;
}
