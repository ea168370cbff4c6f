// The smallest program: one head that sums its past with a fixed decay, on every backend of the
// host. Arguments: names of backends that the library must have.

#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <mambatile/mambatile.hpp>

namespace {

// Returns the largest relative error against the closed form of the geometric sum.
double run(mambatile::backend const& on) {
  constexpr int seqlen = 100;
  constexpr float step = 0.5F;
  std::vector<float> const x(seqlen, 1.0F);
  std::vector<float> const dt(seqlen, step);
  std::vector<float> const A = {-1.0F};
  std::vector<float> out(seqlen, std::nanf(""));

  mambatile::scan_arguments arguments;
  arguments.x = mambatile::make_view(x.data(), {1, seqlen, 1, 1});
  arguments.dt = mambatile::make_view(dt.data(), {1, seqlen, 1});
  arguments.A = mambatile::make_view(A.data(), {1});
  arguments.B = mambatile::make_view(x.data(), {1, seqlen, 1, 1});
  arguments.C = mambatile::make_view(x.data(), {1, seqlen, 1, 1});
  arguments.out = mambatile::make_view(out.data(), {1, seqlen, 1, 1});

  mambatile::context context(on);
  mambatile::chunk_scan(context, arguments);

  double worst = 0;
  double state = 0;
  for (float const value : out) {
    state = state * std::exp(-0.5) + 0.5;
    auto const error = std::abs(static_cast<double>(value) - state) / state;
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) try {
  std::printf("mambatile %s\n", std::string(mambatile::version()).c_str());
  for (int i = 1; i < argc; ++i) (void)mambatile::find_backend(argv[i]);

  bool good = true;
  for (auto const* backend : mambatile::compiled_backends()) {
    auto const name = std::string(backend->name());
    auto const available = backend->is_available();
    if (backend->kind() != mambatile::device_kind::host) continue;
    if (!available) {
      std::printf("%-10s not available: %s\n", name.c_str(), available.reason.c_str());
      continue;
    }
    double const error = run(*backend);
    std::printf("%-10s error %.1e\n", name.c_str(), error);
    good = good && error < 1e-6;
  }
  return good ? 0 : 1;
} catch (std::exception const& problem) {
  std::fprintf(stderr, "consumer: %s\n", problem.what());
  return 1;
}
