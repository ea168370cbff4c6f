#pragma once

#include <cstddef>

#include <mambatile/scan.hpp>

#include "scan_call.hpp"
#include "scan_structure.hpp"

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Where everything lies in the workspace of a plan: offsets in bytes, each aligned to
/// workspace_alignment. Booked for the problem's capacities; smaller calls use the front parts.
struct scan_workspace {
  std::size_t status = 0;
  std::size_t key_weight = 0, query_weight = 0, remaining = 0, remaining_low = 0, delta = 0;
  std::size_t chunk_log_decay = 0, chunk_decay = 0, strong_chunks = 0, run_log_decay = 0;
  std::size_t skip = 0;
  std::size_t run_of_token = 0, chunk_runs = 0, chunk_continues = 0;
  std::size_t segment_sequence = 0;
  std::size_t entries = 0, entry_decay = 0;
  std::size_t partial = 0;
  std::size_t final_states = 0;
  std::size_t x = 0, z = 0, B = 0, C = 0, out = 0;  ///< aligned copies of unaligned views
  std::size_t bytes = 0;
};

[[nodiscard]] scan_workspace book_workspace(scan_problem const& problem,
                                            scan_structure const& structure);

/// The workspace as pointers.
[[nodiscard]] scan_prepared prepared_in(scan_workspace const& workspace,
                                        scan_structure const& structure, void* base);

/// An aligned layout in the workspace for a tensor (batch, tokens, heads, columns).
[[nodiscard]] token_tensor aligned_copy(void* base, std::size_t offset, std::size_t element_bytes,
                                        std::int64_t tokens, std::int64_t heads,
                                        std::int64_t columns) noexcept;

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
