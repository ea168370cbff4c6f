#include "operator_limits.hpp"

#include <array>
#include <cstdint>
#include <string>

#include <mambatile/mambatile.hpp>

namespace mambatile::program {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array floating_types = {dtype::f32, dtype::bf16, dtype::f16};

/// Asks one backend about variations of a plain problem.
template <class Problem>
class questions {
 public:
  questions(backend const& on, Problem const& plain) : on_(on), plain_(plain) {}

  [[nodiscard]] support plain() const { return on_.supports(plain_); }

  template <class Set>
  [[nodiscard]] bool allows(Set const& set) const {
    auto problem = plain_;
    set(problem);
    return on_.supports(problem).ok;
  }

  [[nodiscard]] json types(dtype Problem::*field) const {
    json allowed = json::array();
    for (auto type : floating_types) {
      if (allows([&](Problem& problem) { problem.*field = type; })) {
        allowed.push_back(to_string(type));
      }
    }
    return allowed;
  }

  [[nodiscard]] json largest(std::int64_t Problem::*field) const {
    constexpr std::int64_t beyond_question = std::int64_t{1} << 20U;
    std::int64_t found = 0;
    for (std::int64_t value = 1; value <= beyond_question; value *= 2) {
      if (allows([&](Problem& problem) { problem.*field = value; })) found = value;
    }
    if (found == beyond_question) return "any";
    return found;
  }

 private:
  backend const& on_;
  Problem plain_;
};

json limits_of_scan(backend const& on) {
  scan_problem plain;
  plain.max_batch = 1;
  plain.max_seqlen = 64;
  plain.nheads = 1;
  plain.headdim = 64;
  plain.dstate = 128;
  plain.has_final_states = true;
  questions const ask(on, plain);
  if (auto const answer = ask.plain(); !answer) return {{"reason", answer.reason}};

  json packs = json::array();
  for (auto pack : {packing::dense, packing::cu_seqlens, packing::seq_idx}) {
    bool const allowed = ask.allows([&](auto& problem) {
      problem.pack = pack;
      problem.max_sequences = pack == packing::cu_seqlens ? 1 : 0;
    });
    if (allowed) packs.push_back(to_string(pack));
  }
  json math = json::array();
  for (auto each : {products::accurate, products::tf32}) {
    if (ask.allows([&](auto& problem) { problem.math = each; })) math.push_back(to_string(each));
  }
  // Snapshots after every k tokens: k may be any multiple of this.
  std::int64_t every = 0;
  for (std::int64_t k = 256; k >= 1; k /= 2) {
    if (ask.allows([&](auto& problem) { problem.intermediate_every = k; })) every = k;
  }
  return {{"io", ask.types(&scan_problem::io)},
          {"state", ask.types(&scan_problem::state)},
          {"packing", packs},
          {"products", math},
          {"headdim_max", ask.largest(&scan_problem::headdim)},
          {"dstate_max", ask.largest(&scan_problem::dstate)},
          {"intermediate_every_multiple_of", every}};
}

json limits_of_state_update(backend const& on) {
  state_update_problem plain;
  plain.max_batch = 1;
  plain.nheads = 1;
  plain.headdim = 64;
  plain.dstate = 128;
  plain.has_initial_states = true;
  plain.has_final_states = true;
  questions const ask(on, plain);
  if (auto const answer = ask.plain(); !answer) return {{"reason", answer.reason}};
  return {{"io", ask.types(&state_update_problem::io)},
          {"state", ask.types(&state_update_problem::state)},
          {"tokens_max", ask.largest(&state_update_problem::max_seqlen)},
          {"headdim_max", ask.largest(&state_update_problem::headdim)},
          {"dstate_max", ask.largest(&state_update_problem::dstate)}};
}

template <class Problem>
json limits_of_convolution(backend const& on) {
  Problem plain;
  plain.max_batch = 1;
  plain.channels = 64;
  plain.max_seqlen = 8;
  plain.state_len = 3;
  plain.has_initial_states = true;
  plain.has_final_states = true;
  questions const ask(on, plain);
  if (auto const answer = ask.plain(); !answer) return {{"reason", answer.reason}};
  plain.has_initial_states = plain.has_final_states = false;
  plain.state_len = 0;
  return {{"io", ask.types(&Problem::io)},
          {"channels_max", ask.largest(&Problem::channels)},
          {"width_max", questions(on, plain).largest(&Problem::width)}};
}

json limits_of_norm(backend const& on) {
  gated_rms_norm_problem plain;
  plain.max_rows = 1;
  plain.channels = 64;
  questions const ask(on, plain);
  if (auto const answer = ask.plain(); !answer) return {{"reason", answer.reason}};
  return {{"io", ask.types(&gated_rms_norm_problem::io)},
          {"channels_max", ask.largest(&gated_rms_norm_problem::channels)}};
}

json limits_of_matmul(backend const& on) {
  matmul_problem plain;
  plain.max_rows = 1;
  plain.in_features = 64;
  plain.out_features = 64;
  questions const ask(on, plain);
  if (auto const answer = ask.plain(); !answer) return {{"reason", answer.reason}};
  return {{"x", ask.types(&matmul_problem::x)}, {"weight", ask.types(&matmul_problem::weight)}};
}

template <class Problem>
std::string name_of() {
  return std::string(Problem::operator_name);
}

}  // namespace

json operator_limits(backend const& on) {
  return {{name_of<scan_problem>(), limits_of_scan(on)},
          {name_of<state_update_problem>(), limits_of_state_update(on)},
          {name_of<conv1d_problem>(), limits_of_convolution<conv1d_problem>(on)},
          {name_of<conv1d_update_problem>(), limits_of_convolution<conv1d_update_problem>(on)},
          {name_of<gated_rms_norm_problem>(), limits_of_norm(on)},
          {name_of<matmul_problem>(), limits_of_matmul(on)}};
}

}  // namespace mambatile::program
