#pragma once

#include <cstddef>
#include <cstdint>

#include <mambatile/plan.hpp>
#include <mambatile/scan.hpp>

#include "scan_regime.hpp"
#include "scan_states.hpp"
#include "scan_steps.hpp"

// One call of the scan as its workers see it.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// What a plan has decided.
struct scan_layout {
  scan_problem problem;
  scan_rule rule;
  std::int64_t longest;      ///< tokens of the longest piece
  std::int64_t block_heads;  ///< heads whose states a share keeps at a time
  int threads;
  std::size_t share_bytes;  ///< scratch of one share
};

struct scan_call {
  scan_layout const& layout;
  scan_arguments const& arguments;
};

/// A sequence: where its tokens lie and which states belong to it.
struct scan_row {
  std::int64_t row;    ///< of states
  std::int64_t batch;  ///< of x and the like
  std::int64_t begin;  ///< first token in the batch row
  std::int64_t length;
};

/// What one worker does of a row: heads [first_head, end_head), of each the same columns.
struct scan_part {
  std::int64_t first_head;
  std::int64_t end_head;
  headdim_range columns;
};

[[nodiscard]] inline std::int64_t rows_of(scan_call const& call) noexcept {
  return call.layout.problem.pack == packing::cu_seqlens ? call.arguments.cu_seqlens.extent(0) - 1
                                                         : call.arguments.x.extent(0);
}
[[nodiscard]] scan_row row_of(scan_call const& call, std::int64_t row) noexcept;

/// Scratch of one share, cut from the workspace. Sizes in f32 are those of scan_scratch_bytes.
struct scan_scratch {
  float* states;        ///< block_heads states in panels
  double* exponents;    ///< sum of delta A so far, a head of the block
  float* b;             ///< B of the piece (token, dstate)
  float* c_transposed;  ///< (dstate, token); C as (token, dstate) in sequential pieces
  float* products;      ///< C B^T as (j, i)
  float* weighted;      ///< the same times decays, one head's
  float* x;             ///< one panel of x, weighted for products within the piece
  float* x_state;       ///< one panel of x, weighted for the state
  float* skip;          ///< D of one head
  float* tile;          ///< one tile of results
  piece_steps steps;
  std::int64_t token_stride;   ///< of arrays whose rows are tokens' columns: longest, in packs
  std::int64_t dstate_stride;  ///< of arrays whose rows are (token, dstate): dstate, in packs
};

[[nodiscard]] std::size_t scan_scratch_bytes(scan_layout const& layout) noexcept;
[[nodiscard]] scan_scratch cut_scratch(scan_layout const& layout, void* memory) noexcept;

/// Does a part of a row, for x, z, B, C and out of type Element.
template <class Element>
void run_part(scan_call const& call, scan_row const& row, scan_part const& part,
              scan_scratch& scratch) noexcept;
extern template void run_part<float>(scan_call const&, scan_row const&, scan_part const&,
                                     scan_scratch&) noexcept;
extern template void run_part<bfloat16>(scan_call const&, scan_row const&, scan_part const&,
                                        scan_scratch&) noexcept;
extern template void run_part<float16>(scan_call const&, scan_row const&, scan_part const&,
                                       scan_scratch&) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
