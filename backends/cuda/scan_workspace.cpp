#include "scan_workspace.hpp"

#include <cstddef>
#include <cstdint>

#include <mambatile/dtype.hpp>
#include <mambatile/plan.hpp>

namespace mambatile {
inline namespace v0 {
namespace gpu {
namespace {

class booker {
 public:
  std::size_t take(std::int64_t count, std::size_t element_bytes) {
    std::size_t const offset = bytes_;
    std::size_t const size = static_cast<std::size_t>(count) * element_bytes;
    bytes_ += (size + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
    return offset;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// Columns rounded up so that a row is a multiple of 16 bytes.
std::int64_t padded(std::int64_t columns, std::size_t element_bytes) {
  auto const unit = static_cast<std::int64_t>(16 / element_bytes);
  return (columns + unit - 1) / unit * unit;
}

}  // namespace

scan_workspace book_workspace(scan_problem const& problem, scan_structure const& structure) {
  scan_sizes const size =
      sizes_of(problem, structure, problem.max_batch, problem.max_seqlen, problem.max_sequences);
  std::int64_t const heads = size.heads;
  std::int64_t const slots = size.slots;
  std::int64_t const head_tiles = heads * size.row_tiles;
  std::int64_t const tokens = heads * slots * chunk_tokens;
  std::int64_t const state = static_cast<std::int64_t>(tile_rows) * size.state_columns;
  std::size_t const f32 = sizeof(float);
  bool const general = structure.general();

  booker book;
  scan_workspace at;
  at.status = book.take(1, sizeof(int));
  at.key_weight = book.take(tokens, f32);
  at.query_weight = book.take(general ? 0 : tokens, f32);
  at.remaining = book.take(tokens, f32);
  at.remaining_low = book.take(general ? tokens : 0, f32);
  at.delta = book.take(tokens, f32);
  at.chunk_log_decay = book.take(heads * slots, f32);
  at.chunk_decay = book.take(heads * slots, f32);
  at.strong_chunks = book.take(heads * ((slots + 3) / 4), sizeof(int));
  at.run_log_decay = book.take(general ? tokens : 0, f32);
  at.skip = book.take(head_tiles * tile_rows, f32);
  at.run_of_token = book.take(general ? slots * chunk_tokens : 0, sizeof(int));
  at.chunk_runs = book.take(general ? slots : 0, sizeof(int));
  at.chunk_continues = book.take(general ? slots : 0, sizeof(int));
  at.segment_sequence = book.take(size.packed ? size.segments : 0, sizeof(int));
  at.entries = book.take(size.entries * head_tiles * state, f32);
  at.entry_decay = book.take(size.entries * heads, f32);
  at.partial =
      book.take(structure.slabs > 1 ? slots * head_tiles * tile_rows * chunk_tokens : 0, f32);
  at.final_states =
      book.take(problem.has_final_states ? size.sequences * head_tiles * state : 0, f32);

  // Views may turn out to be unaligned, so there is room for aligned copies.
  std::size_t const io = size_of(problem.io);
  std::int64_t const rows = problem.max_batch * problem.max_seqlen;
  std::int64_t const x_row = problem.nheads * padded(problem.headdim, io);
  std::int64_t const B_row = problem.ngroups * padded(problem.dstate, io);
  at.x = book.take(rows * x_row, io);
  at.z = book.take(problem.has_z ? rows * x_row : 0, io);
  at.B = book.take(rows * B_row, io);
  at.C = book.take(rows * B_row, io);
  at.out = book.take(rows * x_row, io);
  at.bytes = book.bytes();
  return at;
}

scan_prepared prepared_in(scan_workspace const& workspace, scan_structure const& structure,
                          void* base) {
  auto const floats = [base](std::size_t offset) {
    return reinterpret_cast<float*>(static_cast<char*>(base) + offset);
  };
  auto const ints = [base](std::size_t offset) {
    return reinterpret_cast<int*>(static_cast<char*>(base) + offset);
  };
  scan_prepared prepared;
  prepared.status = ints(workspace.status);
  prepared.key_weight = floats(workspace.key_weight);
  prepared.query_weight = structure.general() ? nullptr : floats(workspace.query_weight);
  prepared.remaining = floats(workspace.remaining);
  prepared.remaining_low = floats(workspace.remaining_low);
  prepared.delta = floats(workspace.delta);
  prepared.chunk_log_decay = floats(workspace.chunk_log_decay);
  prepared.chunk_decay = floats(workspace.chunk_decay);
  prepared.strong_chunks = ints(workspace.strong_chunks);
  prepared.run_log_decay = floats(workspace.run_log_decay);
  prepared.skip = floats(workspace.skip);
  prepared.run_of_token = ints(workspace.run_of_token);
  prepared.chunk_runs = ints(workspace.chunk_runs);
  prepared.chunk_continues = ints(workspace.chunk_continues);
  prepared.segment_sequence = ints(workspace.segment_sequence);
  prepared.entries = floats(workspace.entries);
  prepared.entry_decay = floats(workspace.entry_decay);
  prepared.partial = floats(workspace.partial);
  return prepared;
}

token_tensor aligned_copy(void* base, std::size_t offset, std::size_t element_bytes,
                          std::int64_t tokens, std::int64_t heads, std::int64_t columns) noexcept {
  std::int64_t const row = padded(columns, element_bytes);
  return {static_cast<char*>(base) + offset, tokens * heads * row, heads * row, row};
}

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
