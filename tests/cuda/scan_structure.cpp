#include "scan_structure.hpp"

#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "scan_workspace.hpp"
#include "tuning_scan.hpp"

namespace {

using namespace mambatile;
using namespace mambatile::gpu;

constexpr device_properties h200{90, 132};

scan_problem problem(std::int64_t batch, std::int64_t seqlen, std::int64_t nheads,
                     std::int64_t dstate) {
  scan_problem result;
  result.max_batch = batch;
  result.max_seqlen = seqlen;
  result.nheads = nheads;
  result.headdim = 64;
  result.dstate = dstate;
  result.io = dtype::bf16;
  return result;
}

}  // namespace

TEST_CASE("enough segments to fill the device, none too short") {
  // Few heads: eight segments of B4 H8 are 256 of 264 resident blocks.
  CHECK(choose_structure(problem(4, 65536, 8, 128), h200).segment_chunks == 128);
  CHECK(choose_structure(problem(4, 1024, 8, 128), h200).segment_chunks == least_segment_chunks);
  // Batch times heads fills the device: one segment.
  auto const full = choose_structure(problem(8, 8192, 128, 128), h200);
  CHECK(full.segment_chunks == 128);
  CHECK_FALSE(full.several_segments);
  // The search for end states is split where its blocks leave the device half empty.
  auto const split = choose_structure(problem(1, 32768, 80, 128), h200);
  CHECK(split.splits == 2);
  CHECK(split.segment_chunks % split.splits == 0);
}

TEST_CASE("slabs cover dstate, whatever its size") {
  for (std::int64_t dstate : {1, 64, 65, 128, 129, 256, 257, 512}) {
    for (auto io : {dtype::bf16, dtype::f16, dtype::f32}) {
      auto one = problem(1, 100, 4, dstate);
      one.io = io;
      auto const structure = choose_structure(one, h200);
      CHECK(supports_scan(one));
      CHECK(structure.columns * structure.slabs >= dstate);
      CHECK(structure.columns * (structure.slabs - 1) < dstate);
    }
  }
}

TEST_CASE("snapshots are ends of segments") {
  for (std::int64_t every : {64, 128, 192, 448, 4096}) {
    auto one = problem(2, 10000, 4, 128);
    one.intermediate_every = every;
    auto const structure = choose_structure(one, h200);
    CHECK(every % (structure.segment_chunks * chunk_tokens) == 0);
    CHECK(structure.keep_last);
    CHECK(structure.pass_states);
    CHECK(structure.splits == 1);
  }
  auto odd = problem(2, 10000, 4, 128);
  odd.intermediate_every = 100;
  CHECK_FALSE(supports_scan(odd));
}

TEST_CASE("every packing, type and size up to 512 is served") {
  for (auto const pack : {packing::dense, packing::seq_idx, packing::cu_seqlens}) {
    for (auto const io : {dtype::f32, dtype::bf16, dtype::f16}) {
      for (std::int64_t const dstate : {0, 1, 128, 129, 512}) {
        auto one = problem(1, 5000, 4, dstate);
        one.io = io;
        one.pack = pack;
        if (pack == packing::cu_seqlens) one.max_sequences = 3;
        CHECK(supports_scan(one));
      }
    }
  }
  CHECK_FALSE(supports_scan(problem(1, 5000, 4, 513)));
}

TEST_CASE("batch-invariant plans do not look at the batch") {
  auto small = problem(1, 4096, 8, 128);
  auto large = problem(64, 4096, 8, 128);
  small.batch_invariant = large.batch_invariant = true;
  auto const one = choose_structure(small, h200);
  auto const many = choose_structure(large, h200);
  CHECK(one.segment_chunks == many.segment_chunks);
  CHECK(one.splits == many.splits);
  CHECK(one.pass_states == many.pass_states);
}

TEST_CASE("packed sequences get slots of their own") {
  auto one = problem(1, 5000, 4, 128);
  one.pack = packing::cu_seqlens;
  one.max_sequences = 60;
  auto const structure = choose_structure(one, h200);
  auto const size = sizes_of(one, structure, 1, 5000, 60);
  std::int64_t const segment_tokens =
      static_cast<std::int64_t>(structure.segment_chunks) * chunk_tokens;
  // Any cut of the tokens: chunk and segment slots, as the kernels number them, do not meet.
  for (std::int64_t step : {1, 63, 64, 65, 80}) {
    std::int64_t next_slot = 0;
    std::int64_t next_segment = 0;
    std::int64_t next_entry = 0;
    std::int64_t start = 0;
    for (std::int64_t sequence = 0; sequence < 60; ++sequence) {
      std::int64_t const length = sequence == 7 ? 0 : sequence % 3 == 0 ? 1 : step;
      std::int64_t const chunks = (length + chunk_tokens - 1) / chunk_tokens;
      std::int64_t const segments =
          chunks == 0 ? 1 : (chunks + structure.segment_chunks - 1) / structure.segment_chunks;
      std::int64_t const slot = start / chunk_tokens + sequence;
      std::int64_t const segment = start / segment_tokens + sequence;
      std::int64_t const entry = start / segment_tokens * structure.splits;
      CHECK(slot >= next_slot);
      CHECK(segment >= next_segment);
      if (segments > 1) CHECK(entry >= next_entry);
      next_slot = slot + chunks;
      next_segment = segment + segments;
      if (segments > 1) next_entry = entry + (segments - 1) * structure.splits;
      start += length;
    }
    CHECK(next_slot <= size.slots);
    CHECK(next_segment <= size.segments);
    CHECK(next_entry <= size.entries);
  }
}

TEST_CASE("workspace pieces are aligned and in order") {
  auto one = problem(3, 777, 5, 300);
  one.has_final_states = one.has_initial_states = one.has_z = true;
  auto const structure = choose_structure(one, h200);
  auto const at = book_workspace(one, structure);
  std::vector<std::size_t> const offsets = {at.status,
                                            at.key_weight,
                                            at.query_weight,
                                            at.remaining,
                                            at.remaining_low,
                                            at.delta,
                                            at.chunk_log_decay,
                                            at.chunk_decay,
                                            at.strong_chunks,
                                            at.run_log_decay,
                                            at.skip,
                                            at.run_of_token,
                                            at.chunk_runs,
                                            at.chunk_continues,
                                            at.segment_sequence,
                                            at.entries,
                                            at.entry_decay,
                                            at.partial,
                                            at.final_states,
                                            at.x,
                                            at.z,
                                            at.B,
                                            at.C,
                                            at.out,
                                            at.bytes};
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    CHECK(offsets[i] % workspace_alignment == 0);
    if (i > 0) CHECK(offsets[i] >= offsets[i - 1]);
  }
  auto smaller = one;
  smaller.max_seqlen = 100;
  CHECK(book_workspace(smaller, structure).bytes < at.bytes);
}
