// The scan of one layer over a whole sequence, then over the same sequence in two parts: the state
// that the first part leaves is where the second one starts.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <mambatile/mambatile.hpp>

namespace {

// One layer of mamba2-130m.
constexpr std::int64_t nheads = 24;
constexpr std::int64_t headdim = 64;
constexpr std::int64_t ngroups = 1;
constexpr std::int64_t dstate = 128;

std::vector<float> wave(std::int64_t size, float low, float high, float pace) {
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = low + (high - low) * (0.5F + 0.5F * std::sin(pace * static_cast<float>(i)));
  }
  return values;
}

struct layer_inputs {
  explicit layer_inputs(std::int64_t seqlen)
      : x(wave(seqlen * nheads * headdim, -1, 1, 0.31F)),
        dt(wave(seqlen * nheads, 0.001F, 0.1F, 0.17F)),
        A(wave(nheads, -16, -1, 0.7F)),
        B(wave(seqlen * ngroups * dstate, -1, 1, 0.23F)),
        C(wave(seqlen * ngroups * dstate, -1, 1, 0.29F)),
        D(wave(nheads, 0, 1, 0.9F)) {}
  std::vector<float> x, dt, A, B, C, D;
};

}  // namespace

int main() try {
  using mambatile::make_view;
  constexpr std::int64_t seqlen = 1000;
  constexpr std::int64_t cut = 421;
  layer_inputs const inputs(seqlen);

  // The tokens [first, first + count) as tensors of one row; views cost nothing.
  auto const tokens = [&](std::int64_t first, std::int64_t count, std::vector<float>& out) {
    mambatile::scan_arguments arguments;
    arguments.x =
        make_view(inputs.x.data() + first * nheads * headdim, {1, count, nheads, headdim});
    arguments.dt = make_view(inputs.dt.data() + first * nheads, {1, count, nheads});
    arguments.A = make_view(inputs.A.data(), {nheads});
    arguments.B =
        make_view(inputs.B.data() + first * ngroups * dstate, {1, count, ngroups, dstate});
    arguments.C =
        make_view(inputs.C.data() + first * ngroups * dstate, {1, count, ngroups, dstate});
    arguments.D = make_view(inputs.D.data(), {nheads});
    arguments.out = make_view(out.data() + first * nheads * headdim, {1, count, nheads, headdim});
    return arguments;
  };

  for (auto const* backend : mambatile::compiled_backends()) {
    if (auto const available = backend->is_available(); !available) {
      std::printf("%s: not available: %s\n", backend->name().data(), available.reason.c_str());
      continue;
    }
    if (backend->kind() != mambatile::device_kind::host) continue;  // these tensors are on the host
    mambatile::context context(*backend);

    std::vector<float> whole(inputs.x.size());
    mambatile::chunk_scan(context, tokens(0, seqlen, whole));

    std::vector<float> parts(inputs.x.size());
    std::vector<float> memory(nheads * headdim * dstate);
    auto const state = mambatile::make_state_view(memory.data(), 1, nheads, headdim, dstate,
                                                  backend->preferred_state_layout());
    auto first = tokens(0, cut, parts);
    first.final_states = state;
    mambatile::chunk_scan(context, first);
    auto second = tokens(cut, seqlen - cut, parts);
    second.initial_states = second.final_states = state;  // in place
    mambatile::chunk_scan(context, second);

    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      double const error = double{parts[i]} - double{whole[i]};
      difference += error * error;
      norm += double{whole[i]} * double{whole[i]};
    }
    double const relative = std::sqrt(difference / norm);
    std::printf("%s: %lld tokens at once and cut at %lld differ by %.1e\n", backend->name().data(),
                static_cast<long long>(seqlen), static_cast<long long>(cut), relative);
    if (!(relative < 4e-6)) return 1;
  }
  return 0;
} catch (mambatile::error const& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
