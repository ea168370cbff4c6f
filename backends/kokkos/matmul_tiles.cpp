#include <algorithm>
#include <cstdint>

#include "convert.hpp"
#include "matmul_kernels.hpp"
#include "scan_pack.hpp"
#include "scan_tiles.hpp"
#include "tuning_matmul.hpp"

// A thread packs as many panels of the weight as its share of L2 holds, with all inputs, inputs
// outermost. Each tile of rows of x is brought in once and meets all of them; meanwhile the weights
// that come next are asked for. So the weight is read and packed once, whatever the number of rows,
// and each output is one sum over the inputs in their order.

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

[[nodiscard]] std::int64_t panels_kept(matmul_problem const& problem) noexcept {
  auto const bytes = std::max<std::int64_t>(problem.in_features, 1) * panel_width *
                     static_cast<std::int64_t>(sizeof(float));
  auto const all =
      std::max<std::int64_t>((problem.out_features + panel_width - 1) / panel_width, 1);
  return std::clamp<std::int64_t>(matmul_tuned.panel_bytes / bytes, 1, all);
}

// Rows of x lie further apart than whole packs need, so that those of a tile do not all fall into
// the same set of L1 where the number of inputs is a power of two.
[[nodiscard]] std::int64_t x_pitch(matmul_problem const& problem) noexcept {
  return (problem.in_features + pack_width - 1) / pack_width * pack_width + matmul_tuned.row_gap;
}

template <class Element>
[[nodiscard]] Element const* row_of(const_tensor_view const& view, std::int64_t row) noexcept {
  return static_cast<Element const*>(view.data) + row * view.stride(0);
}

// Asks for rows of a matrix, line by line, a part at a time.
class fetcher {
 public:
  fetcher(const_tensor_view const& matrix, std::int64_t first_row, std::int64_t rows) noexcept
      : row_(static_cast<char const*>(matrix.data) + first_row * pitch_of(matrix)),
        pitch_(pitch_of(matrix)),
        row_lines_((matrix.extent(1) * static_cast<std::int64_t>(size_of(matrix.type)) + line - 1) /
                   line),
        left_(rows * row_lines_) {}

  [[nodiscard]] std::int64_t lines_left() const noexcept { return left_; }
  void fetch(std::int64_t lines) noexcept {
    lines = std::min(lines, left_);
    left_ -= lines;
    for (; lines > 0; --lines) {
      __builtin_prefetch(row_ + line_ * line, 0, 2);
      if (++line_ == row_lines_) {
        line_ = 0;
        row_ += pitch_;
      }
    }
  }

 private:
  static constexpr std::int64_t line = 64;
  [[nodiscard]] static std::int64_t pitch_of(const_tensor_view const& matrix) noexcept {
    return matrix.stride(0) * static_cast<std::int64_t>(size_of(matrix.type));
  }

  char const* row_;
  std::int64_t pitch_;
  std::int64_t row_lines_;
  std::int64_t left_;
  std::int64_t line_ = 0;
};

// Panels of some rows of the weight, one after the other.
void pack_panels(const_tensor_view const& weight, std::int64_t first_row, std::int64_t rows,
                 float* to) noexcept {
  auto const inputs = weight.extent(1);
  visit_type(weight.type, [&]<class Element>(Element const*) {
    for (std::int64_t row = 0; row < rows; row += panel_width) {
      pack_transposed(row_of<Element>(weight, first_row + row), weight.stride(0),
                      std::min<std::int64_t>(panel_width, rows - row), inputs, to + row * inputs,
                      panel_width);
    }
  });
}

}  // namespace

std::int64_t tile_scratch(matmul_problem const& problem) noexcept {
  if (problem.max_rows <= matmul_tuned.dot_rows) return 0;
  return product_rows * x_pitch(problem) +
         panels_kept(problem) * panel_width * (problem.in_features + product_rows);
}

void run_tiles(matmul_part const& part, float* scratch) noexcept {
  auto const& problem = part.problem;
  auto const& x = part.arguments.x;
  auto const& weight = part.arguments.weight;
  auto const rows = x.extent(0);
  auto const inputs = problem.in_features;
  auto const pitch = x_pitch(problem);
  auto const width = panels_kept(problem) * panel_width;
  auto const tiles = (rows + product_rows - 1) / product_rows;
  float* const packed_x = scratch;
  float* const sums = packed_x + product_rows * pitch;
  float* const panels = sums + product_rows * width;

  for (auto o = part.first_output; o < part.last_output; o += width) {
    auto const outputs = std::min(width, part.last_output - o);
    pack_panels(weight, o, outputs, panels);
    fetcher next(weight, o + outputs, std::min(width, part.last_output - o - outputs));
    auto const lines_a_tile = (next.lines_left() + tiles - 1) / tiles;
    for_each_tile(rows, product_rows, [&](std::int64_t row, int here) {
      next.fetch(lines_a_tile);
      visit_type(problem.x, [&]<class Element>(Element const*) {
        pack_rows(row_of<Element>(x, row), x.stride(0), here, inputs, packed_x, pitch);
      });
      for (std::int64_t column = 0; column < outputs; column += panel_width) {
        auto const left = std::min<std::int64_t>(panel_width, outputs - column);
        run(product_tile{.left = packed_x,
                         .left_stride = pitch,
                         .right = panels + column * inputs,
                         .right_stride = panel_width,
                         .count = inputs,
                         .target = sums + column,
                         .target_stride = width},
            here, static_cast<int>((left + pack_width - 1) / pack_width));
      }
      finish_outputs(part, row, here, o, outputs, sums, width);
    });
  }
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
