#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/scan.hpp>

namespace mambatile::testing {
namespace {

// Every field changed alone.
std::vector<scan_problem> changed_problems() {
  std::vector<scan_problem> all;
  auto const change = [&](auto const& set) {
    scan_problem problem;
    set(problem);
    all.push_back(problem);
  };
  change([](auto& p) { p.max_batch = 7; });
  change([](auto& p) { p.max_seqlen = 7; });
  change([](auto& p) { p.max_sequences = 7; });
  change([](auto& p) { p.nheads = 7; });
  change([](auto& p) { p.headdim = 7; });
  change([](auto& p) { p.ngroups = 7; });
  change([](auto& p) { p.dstate = 7; });
  change([](auto& p) { p.io = dtype::bf16; });
  change([](auto& p) { p.dt = dtype::bf16; });
  change([](auto& p) { p.state = dtype::bf16; });
  change([](auto& p) { p.D_type = dtype::bf16; });
  change([](auto& p) { p.dt_bias_type = dtype::bf16; });
  change([](auto& p) { p.dt_softplus = true; });
  change([](auto& p) { p.dt_limit[0] = 0.5F; });
  change([](auto& p) { p.dt_limit[1] = 0.5F; });
  change([](auto& p) { p.D = skip::per_channel; });
  change([](auto& p) { p.has_z = true; });
  change([](auto& p) { p.has_dt_bias = true; });
  change([](auto& p) { p.has_initial_states = true; });
  change([](auto& p) { p.has_final_states = true; });
  change([](auto& p) { p.has_state_source = true; });
  change([](auto& p) { p.has_state_target = true; });
  change([](auto& p) { p.has_total_decay = true; });
  change([](auto& p) { p.intermediate_every = 64; });
  change([](auto& p) { p.pack = packing::seq_idx; });
  change([](auto& p) { p.math = products::tf32; });
  change([](auto& p) { p.batch_invariant = true; });
  change([](auto& p) { p.chunk_size = 64; });
  change([](auto& p) { p.threads = 3; });
  return all;
}

TEST_CASE("scan_problem: every field counts in ==, hash and text", "[unit]") {
  std::unordered_set<std::size_t> hashes = {std::hash<scan_problem>{}(scan_problem{})};
  std::unordered_set<std::string> texts = {to_string(scan_problem{})};
  auto const all = changed_problems();
  for (auto const& problem : all) {
    CHECK(problem != scan_problem{});
    CHECK(problem == scan_problem(problem));
    hashes.insert(std::hash<scan_problem>{}(problem));
    texts.insert(to_string(problem));
  }
  CHECK(hashes.size() == all.size() + 1);
  CHECK(texts.size() == all.size() + 1);
}

TEST_CASE("scan_problem: text shows what differs from the defaults", "[unit]") {
  CHECK(to_string(scan_problem{}) == "chunk_scan()");
  CHECK(to_string(scan_problem{.max_batch = 2,
                               .io = dtype::bf16,
                               .dt_limit = {0.001F, 0.5F},
                               .D = skip::per_head,
                               .has_z = true}) ==
        "chunk_scan(max_batch = 2, io = bf16, dt_limit.lo = 0.001, dt_limit.hi = 0.5, D = "
        "per_head, has_z = true)");
}

TEST_CASE("scan_problem: make_problem reads sizes, types and presence off the tensors", "[unit]") {
  float f = 0;
  bfloat16 h;
  std::int32_t i = 0;
  scan_arguments arguments;
  arguments.x = make_view(&h, {2, 5, 8, 3});
  arguments.dt = make_view(&f, {2, 5, 8});
  arguments.A = make_view(&f, {8});
  arguments.B = make_view(&h, {2, 5, 4, 6});
  arguments.C = make_view(&h, {2, 5, 4, 6});
  arguments.out = make_view(&h, {2, 5, 8, 3});
  scan_problem const plain{.max_batch = 2,
                           .max_seqlen = 5,
                           .nheads = 8,
                           .headdim = 3,
                           .ngroups = 4,
                           .dstate = 6,
                           .io = dtype::bf16};
  CHECK(make_problem(arguments) == plain);

  arguments.D = make_view(&h, {8, 3});
  arguments.z = arguments.x;
  arguments.dt_bias = make_view(&h, {8});
  arguments.initial_states = make_view(&h, {9, 8, 3, 6});
  arguments.final_states = make_view(&h, {9, 8, 3, 6});
  arguments.state_source = make_view(&i, {2});
  arguments.state_target = make_view(&i, {2});
  arguments.seq_idx = make_view(&i, {2, 5});
  arguments.total_decay = make_view(&f, {2, 8});
  auto full = plain;
  full.D = skip::per_channel;
  full.state = full.D_type = full.dt_bias_type = dtype::bf16;
  full.has_z = full.has_dt_bias = full.has_initial_states = full.has_final_states = true;
  full.has_state_source = full.has_state_target = full.has_total_decay = true;
  full.pack = packing::seq_idx;
  full.dt_softplus = full.batch_invariant = true;
  full.dt_limit = {0.1F, 0.2F};
  full.intermediate_every = 3;
  full.math = products::tf32;
  full.chunk_size = 32;
  full.threads = 2;
  CHECK(make_problem(arguments, {.dt_softplus = true,
                                 .dt_limit = {0.1F, 0.2F},
                                 .intermediate_every = 3,
                                 .math = products::tf32,
                                 .batch_invariant = true,
                                 .chunk_size = 32,
                                 .threads = 2}) == full);

  arguments.seq_idx = {};
  arguments.cu_seqlens = make_view(&i, {4});
  CHECK(make_problem(arguments).pack == packing::cu_seqlens);
  CHECK(make_problem(arguments).max_sequences == 3);
}

}  // namespace
}  // namespace mambatile::testing
