// A sequence of one layer from prompt to generation: the scan over the prompt, single tokens, the
// state saved to a file and restored from it, and drafted tokens of which some are rejected.
// States lie in a pool of slots, as in a server; no step copies one.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <mambatile/mambatile.hpp>

namespace {

using mambatile::make_view;

// One layer of mamba2-130m.
constexpr std::int64_t nheads = 24;
constexpr std::int64_t headdim = 64;
constexpr std::int64_t ngroups = 1;
constexpr std::int64_t dstate = 128;
constexpr std::int64_t state_size = nheads * headdim * dstate;

std::vector<float> wave(std::int64_t size, float low, float high, float pace) {
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = low + (high - low) * (0.5F + 0.5F * std::sin(pace * static_cast<float>(i)));
  }
  return values;
}

// The text: what a model would compute for each token.
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

// Tokens [first, first + count) of the text as the tensors of a call; views cost nothing.
template <class Arguments>
Arguments tokens(layer_inputs const& text, std::int64_t first, std::int64_t count,
                 std::vector<float>& out) {
  Arguments call;
  call.x = make_view(text.x.data() + first * nheads * headdim, {1, count, nheads, headdim});
  call.dt = make_view(text.dt.data() + first * nheads, {1, count, nheads});
  call.A = make_view(text.A.data(), {nheads});
  call.B = make_view(text.B.data() + first * ngroups * dstate, {1, count, ngroups, dstate});
  call.C = make_view(text.C.data() + first * ngroups * dstate, {1, count, ngroups, dstate});
  call.D = make_view(text.D.data(), {nheads});
  call.out = make_view(out.data() + first * nheads * headdim, {1, count, nheads, headdim});
  return call;
}

constexpr char const* format = "mambatile example: state of a sequence";
constexpr char const* version = "1";

mambatile::tensor_view slot_of(mambatile::tensor_view pool, std::int64_t slot) {
  pool.data = static_cast<float*>(pool.data) + slot * pool.stride(0);
  pool.extents[0] = 1;
  return pool;
}

// The state goes to the file row-major, however the pool stores it.
void save_sequence(std::filesystem::path const& path, mambatile::const_tensor_view const& state,
                   std::int64_t position) {
  mambatile::safetensors_writer writer;
  writer.add("state", state);
  writer.set_metadata("format", format);
  writer.set_metadata("version", version);
  writer.set_metadata("position", std::to_string(position));
  writer.write(path);
}

// Into a slot of any pool; returns the number of tokens that the state stands for.
std::int64_t restore_sequence(std::filesystem::path const& path,
                              mambatile::tensor_view const& state) {
  mambatile::safetensors_file const file(path);
  auto const entry = [&](char const* key) {
    auto const found = file.metadata().find(key);
    if (found == file.metadata().end()) {
      throw mambatile::file_error(path.string() + ": no \"" + key + "\" in its metadata");
    }
    return found->second;
  };
  if (entry("format") != format) {
    throw mambatile::file_error(path.string() + ": holds " + entry("format") + ", not " + format);
  }
  if (entry("version") != version) {
    throw mambatile::file_error(path.string() + ": version " + entry("version") + ", expected " +
                                version);
  }
  auto const stored = file.view("state");
  if (stored.type != state.type) {
    throw mambatile::file_error(path.string() + ": state has type " +
                                std::string(to_string(stored.type)) + ", expected " +
                                std::string(to_string(state.type)));
  }
  file.copy_to("state", state);  // refuses another shape
  return std::stoll(entry("position"));
}

double difference(std::vector<float> const& got, std::vector<float> const& want,
                  std::int64_t tokens) {
  double error = 0;
  double norm = 0;
  for (std::int64_t i = 0; i < tokens * nheads * headdim; ++i) {
    auto const at = static_cast<std::size_t>(i);
    error += std::pow(double{got[at]} - double{want[at]}, 2);
    norm += std::pow(double{want[at]}, 2);
  }
  return std::sqrt(error / norm);
}

void run(mambatile::backend const& backend) {
  using mambatile::chunk_scan;
  using mambatile::scan_arguments;
  using mambatile::state_update;
  using mambatile::state_update_arguments;
  constexpr std::int64_t prompt = 150;
  constexpr std::int64_t seqlen = 170;
  layer_inputs const text(seqlen);
  mambatile::context context(backend);

  // What all of this must give: the whole text in one scan.
  std::vector<float> want(text.x.size());
  chunk_scan(context, tokens<scan_arguments>(text, 0, seqlen, want));

  constexpr std::int64_t slots = 8;
  std::vector<float> memory(slots * state_size);
  auto const pool = make_state_view(memory.data(), slots, nheads, headdim, dstate,
                                    backend.preferred_state_layout());
  std::vector<float> out(text.x.size());

  // 1. The prompt, from nothing into slot 5.
  std::int32_t const here = 5;
  auto prefill = tokens<scan_arguments>(text, 0, prompt, out);
  prefill.final_states = pool;
  prefill.state_target = make_view(&here, {1});
  chunk_scan(context, prefill);

  // 2. Ten tokens, one a call, in place.
  std::int64_t position = prompt;
  for (; position < prompt + 10; ++position) {
    auto token = tokens<state_update_arguments>(text, position, 1, out);
    token.initial_states = token.final_states = pool;
    token.state_source = token.state_target = make_view(&here, {1});
    state_update(context, token);
  }

  // 3. To a file and back, into slot 0. The old slot is free then.
  auto const path = std::filesystem::temp_directory_path() /
                    ("mambatile_example_02_" + std::string(backend.name()) + ".safetensors");
  save_sequence(path, slot_of(pool, here), position);
  std::int32_t const there = 0;
  if (restore_sequence(path, slot_of(pool, there)) != position) {
    throw mambatile::file_error(path.string() + ": wrong position");
  }
  std::filesystem::remove(path);

  // 4. Four drafted tokens a call, each with a slot for the state behind it; in front of those the
  // slot with the state before all of them. A check of the drafts, which a model would do with
  // `out`, accepts two of each call's, but none of the second one's. The accepted slot is swapped
  // to the front: each call starts there, and none writes there, so that the third call can start
  // where the second did. What rejected ones wrote is written over.
  std::array<std::int32_t, 5> table = {there, 1, 2, 3, 4};
  std::int32_t const from_front = 0;
  for (int call = 0; position + 4 <= seqlen; ++call) {
    auto draft = tokens<state_update_arguments>(text, position, 4, out);
    draft.initial_states = draft.final_states = pool;
    draft.state_source = make_view(table.data(), {1, 5});
    draft.num_accepted = make_view(&from_front, {1});
    draft.state_target = make_view(table.data() + 1, {1, 4});
    state_update(context, draft, {.source_has_start = true});
    std::int64_t const accepted = call == 1 ? 0 : 2;
    std::swap(table[0], table[static_cast<std::size_t>(accepted)]);
    position += accepted;
  }

  double const error = difference(out, want, position);
  std::printf("%s: %lld tokens in pieces differ from one scan by %.1e\n", backend.name().data(),
              static_cast<long long>(position), error);
  if (!(error < 4e-6)) throw mambatile::error("the pieces do not give the whole");
}

}  // namespace

int main() try {
  for (auto const* backend : mambatile::compiled_backends()) {
    if (auto const available = backend->is_available(); !available) {
      std::printf("%s: not available: %s\n", backend->name().data(), available.reason.c_str());
      continue;
    }
    if (backend->kind() != mambatile::device_kind::host) continue;  // these tensors are on the host
    run(*backend);
  }
  return 0;
} catch (mambatile::error const& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
