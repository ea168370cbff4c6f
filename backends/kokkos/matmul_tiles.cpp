#include <algorithm>
#include <cstdint>

#include "convert.hpp"
#include "matmul_kernels.hpp"
#include "scan_pack.hpp"
#include "scan_tiles.hpp"
#include "tuning_matmul.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

// Rows of a tile lie side by side in whole packs.
constexpr std::int64_t tile_pitch = (tuning.tile_rows + pack_width - 1) / pack_width * pack_width;

[[nodiscard]] std::int64_t tiles_kept(matmul_problem const& problem) noexcept {
  auto const bytes_per_tile = std::max<std::int64_t>(1, problem.in_features) * tile_pitch *
                              static_cast<std::int64_t>(sizeof(float));
  auto const fitting = std::max<std::int64_t>(1, matmul_tuned.input_bytes / bytes_per_tile);
  auto const needed = (problem.max_rows + tuning.tile_rows - 1) / tuning.tile_rows;
  return std::max<std::int64_t>(1, std::min(fitting, needed));
}

[[nodiscard]] std::int64_t inner_block(matmul_problem const& problem) noexcept {
  return std::max<std::int64_t>(1, std::min(matmul_tuned.inner_block, problem.in_features));
}

template <class Element>
[[nodiscard]] Element const* row_of(const_tensor_view const& view, std::int64_t row,
                                    std::int64_t column) noexcept {
  return static_cast<Element const*>(view.data) + row * view.stride(0) + column;
}

// One packed panel of the weight, k outer, against all packed tiles of x.
void multiply_panel(float const* packed_x, std::int64_t tile_elements, std::int64_t rows,
                    float const* panel, std::int64_t count, int vectors, bool first,
                    float* sums) noexcept {
  for (std::int64_t row = 0; row < rows; row += tuning.tile_rows) {
    auto const here = static_cast<int>(std::min<std::int64_t>(tuning.tile_rows, rows - row));
    run(update_tile{.product = {packed_x + row / tuning.tile_rows * tile_elements, tile_pitch,
                                panel, panel_width, count},
                    .source = sums + row * panel_width,
                    .source_stride = panel_width,
                    .target = sums + row * panel_width,
                    .target_stride = panel_width,
                    .first_scale = 1.0F,
                    .last_scale = 1.0F,
                    .from_zero = first},
        here, vectors);
  }
}

}  // namespace

std::int64_t tile_scratch(matmul_problem const& problem) noexcept {
  auto const tiles = tiles_kept(problem);
  return tiles * problem.in_features * tile_pitch + inner_block(problem) * panel_width +
         tiles * tuning.tile_rows * panel_width;
}

void run_tiles(matmul_part const& part, float* scratch) noexcept {
  auto const& problem = part.problem;
  auto const& x = part.arguments.x;
  auto const& weight = part.arguments.weight;
  auto const inner = problem.in_features;
  auto const tiles = tiles_kept(problem);
  auto const tile_elements = inner * tile_pitch;
  auto const block = inner_block(problem);
  float* const packed_x = scratch;
  float* const panel = packed_x + tiles * tile_elements;
  float* const sums = panel + block * panel_width;

  auto const all_rows = x.extent(0);
  for (std::int64_t first_row = 0; first_row < all_rows; first_row += tiles * tuning.tile_rows) {
    auto const rows = std::min(tiles * tuning.tile_rows, all_rows - first_row);
    visit_type(problem.x, [&]<class Element>(Element const*) {
      for (std::int64_t row = 0; row < rows; row += tuning.tile_rows) {
        auto const here = std::min<std::int64_t>(tuning.tile_rows, rows - row);
        pack_transposed(row_of<Element>(x, first_row + row, 0), x.stride(0), here, inner,
                        packed_x + row / tuning.tile_rows * tile_elements, tile_pitch);
      }
    });
    for (std::int64_t o = part.first_output; o < part.last_output; o += panel_width) {
      auto const outputs = std::min<std::int64_t>(panel_width, part.last_output - o);
      auto const vectors = static_cast<int>((outputs + pack_width - 1) / pack_width);
      for (std::int64_t k = 0; k < std::max<std::int64_t>(inner, 1); k += block) {
        auto const count = std::min(block, inner - k);
        visit_type(problem.weight, [&]<class Element>(Element const*) {
          pack_transposed(row_of<Element>(weight, o, k), weight.stride(0), outputs, count, panel,
                          panel_width);
        });
        multiply_panel(packed_x + k * tile_pitch, tile_elements, rows, panel, count, vectors,
                       k == 0, sums);
      }
      for (std::int64_t row = 0; row < rows; ++row) {
        finish_outputs(part, first_row + row, o, outputs, sums + row * panel_width);
      }
    }
  }
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
