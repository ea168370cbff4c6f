#include "scan_structure.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tuning_scan.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

constexpr std::int64_t divide_up(std::int64_t left, std::int64_t right) {
  return (left + right - 1) / right;
}

std::int64_t head_tiles(scan_problem const& problem) {
  return problem.nheads * divide_up(problem.headdim, tile_rows);
}

scan_kernels choose_kernels(scan_problem const& problem) {
  switch (problem.io) {
    case dtype::bf16: {
      // The tuned kernels take a packed sequence's last chunk in the other form than a dense row's.
      bool const tuned = !problem.batch_invariant &&
                         (problem.pack == packing::dense ||
                          (problem.pack == packing::cu_seqlens && problem.dstate <= 128));
      return tuned ? scan_kernels::tuned_bf16 : scan_kernels::general_bf16;
    }
    case dtype::f16: return scan_kernels::general_f16;
    default:
      return problem.math == products::tf32 ? scan_kernels::general_tf32
                                            : scan_kernels::general_f32;
  }
}

int choose_columns(scan_problem const& problem, scan_kernels kernels) {
  if (kernels == scan_kernels::tuned_bf16 && problem.pack == packing::dense) {
    return problem.dstate <= 64 ? 64 : problem.dstate <= 128 ? 128 : 256;
  }
  return kernels == scan_kernels::general_f32 ? 64 : 128;
}

/// Just enough segments to fill the device, none too short.
int choose_segment_chunks(scan_problem const& problem, device_properties const& device,
                          scan_structure const& structure) {
  if (problem.batch_invariant) return invariant_segment_chunks;
  bool const narrow = !structure.general() && structure.columns <= 128;
  std::int64_t const blocks =
      device.multiprocessors * (narrow ? resident_blocks_narrow : resident_blocks_wide);
  std::int64_t const chunks =
      std::max<std::int64_t>(1, divide_up(problem.max_seqlen, chunk_tokens));
  bool const packed = problem.pack == packing::cu_seqlens;
  std::int64_t const rows = packed ? 1 : std::max<std::int64_t>(1, problem.max_batch);
  std::int64_t const walkers = std::max<std::int64_t>(1, rows * head_tiles(problem));
  std::int64_t const wanted = std::max<std::int64_t>(1, blocks / walkers);
  std::int64_t const segments = std::clamp<std::int64_t>(chunks / least_segment_chunks, 1, wanted);
  return static_cast<int>(divide_up(chunks, segments));
}

/// Blocks that share a segment's end state, when the segments alone leave the device half empty.
int choose_splits(scan_problem const& problem, device_properties const& device,
                  int segment_chunks) {
  std::int64_t const segments =
      divide_up(divide_up(problem.max_seqlen, chunk_tokens), segment_chunks);
  std::int64_t const rows =
      problem.pack == packing::cu_seqlens ? 1 : std::max<std::int64_t>(1, problem.max_batch);
  std::int64_t const blocks = (segments - 1) * rows * head_tiles(problem);
  if (blocks <= 0 || problem.batch_invariant) return 1;
  std::int64_t const resident = device.multiprocessors * resident_blocks_narrow;
  std::int64_t const splits =
      std::clamp<std::int64_t>((2 * resident + blocks) / (2 * blocks), 1, most_splits);
  return segment_chunks / splits < least_segment_chunks ? 1 : static_cast<int>(splits);
}

}  // namespace

support supports_scan(scan_problem const& problem) {
  if (problem.dstate > 512) {
    return {false, fmt::format("dstate = {}; the kernels serve up to 512", problem.dstate)};
  }
  if (problem.intermediate_every % chunk_tokens != 0) {
    return {false, fmt::format("intermediate_every = {}; on a GPU snapshots lie on multiples of {}",
                               problem.intermediate_every, chunk_tokens)};
  }
  std::int64_t const slots =
      std::max<std::int64_t>(1, problem.max_batch) *
          std::max<std::int64_t>(1, divide_up(problem.max_seqlen, chunk_tokens)) +
      problem.max_sequences;
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (slots > most / chunk_tokens ||
      slots * std::max<std::int64_t>(1, head_tiles(problem)) > most) {
    return {false, fmt::format("{} chunks of {} tokens with {} tiles of heads are more than 32-bit "
                               "block numbers can count",
                               slots, chunk_tokens, head_tiles(problem))};
  }
  return {true, {}};
}

scan_structure choose_structure(scan_problem const& problem, device_properties const& device) {
  scan_structure structure;
  structure.kernels = choose_kernels(problem);
  structure.columns = choose_columns(problem, structure.kernels);
  structure.slabs = static_cast<int>(divide_up(problem.dstate, structure.columns));
  structure.segment_chunks = choose_segment_chunks(problem, device, structure);
  if (problem.intermediate_every > 0) {
    // Snapshots are end states of segments.
    int const every = static_cast<int>(problem.intermediate_every / chunk_tokens);
    int length = std::min(structure.segment_chunks, every);
    while (every % length != 0) --length;
    structure.segment_chunks = length;
    structure.keep_last = true;
    structure.pass_states = true;
  } else {
    structure.splits = choose_splits(problem, device, structure.segment_chunks);
    structure.segment_chunks =
        static_cast<int>(divide_up(structure.segment_chunks, structure.splits) * structure.splits);
  }
  std::int64_t const segments =
      divide_up(divide_up(problem.max_seqlen, chunk_tokens), structure.segment_chunks);
  structure.several_segments = segments > 1;
  if (segments * structure.splits > most_folded_entries || problem.batch_invariant) {
    structure.pass_states = true;
  }
  return structure;
}

scan_sizes sizes_of(scan_problem const& problem, scan_structure const& structure,
                    std::int64_t batch, std::int64_t seqlen, std::int64_t sequences) {
  scan_sizes size;
  size.packed = problem.pack == packing::cu_seqlens;
  size.seqlen = static_cast<int>(seqlen);
  size.heads = static_cast<int>(problem.nheads);
  size.groups = static_cast<int>(problem.ngroups);
  size.headdim = static_cast<int>(problem.headdim);
  size.dstate = static_cast<int>(problem.dstate);
  size.row_tiles = static_cast<int>(divide_up(problem.headdim, tile_rows));
  size.state_columns = structure.columns * structure.slabs;
  size.segment_chunks = structure.segment_chunks;
  size.splits = structure.splits;
  size.keep_last = structure.keep_last;
  size.has_initial = problem.has_initial_states;
  size.passed = structure.pass_states;
  std::int64_t const segment_tokens =
      static_cast<std::int64_t>(structure.segment_chunks) * chunk_tokens;
  std::int64_t const kept_last = structure.keep_last ? 1 : 0;
  std::int64_t const initial = problem.has_initial_states ? 1 : 0;
  std::int64_t entries = 0;
  if (size.packed) {
    size.sequences = static_cast<int>(sequences);
    size.slots = static_cast<int>(seqlen / chunk_tokens + sequences);
    size.segments = static_cast<int>(seqlen / segment_tokens + sequences);
    entries = (seqlen / segment_tokens + kept_last * sequences) * size.splits + initial * sequences;
  } else {
    size.sequences = static_cast<int>(batch);
    size.row_chunks = static_cast<int>(std::max<std::int64_t>(1, divide_up(seqlen, chunk_tokens)));
    size.row_segments = static_cast<int>(divide_up(size.row_chunks, structure.segment_chunks));
    size.slots = static_cast<int>(batch * size.row_chunks);
    size.segments = static_cast<int>(batch * size.row_segments);
    entries = batch * ((size.row_segments - 1 + kept_last) * size.splits + initial);
  }
  size.entries = static_cast<int>(std::max<std::int64_t>(1, entries));
  return size;
}

std::string describe(scan_structure const& structure) {
  std::string_view name;
  switch (structure.kernels) {
    case scan_kernels::tuned_bf16: name = "tuned bf16"; break;
    case scan_kernels::general_bf16: name = "general bf16"; break;
    case scan_kernels::general_f16: name = "general f16"; break;
    case scan_kernels::general_tf32: name = "general tf32"; break;
    case scan_kernels::general_f32: name = "general f32"; break;
  }
  return fmt::format("{} chunk={} columns={}x{} segment={} chunks splits={}{}", name, chunk_tokens,
                     structure.columns, structure.slabs, structure.segment_chunks, structure.splits,
                     structure.pass_states ? " passing" : "");
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
