#pragma once

#include <cstdint>

#include <mambatile/matmul.hpp>

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// Outputs [first_output, last_output) of all rows, by one thread.
struct matmul_part {
  matmul_problem const& problem;
  matmul_arguments const& arguments;
  std::int64_t first_output;
  std::int64_t last_output;
};

/// f32 elements of scratch that a thread needs.
[[nodiscard]] std::int64_t dot_scratch(matmul_problem const& problem) noexcept;
[[nodiscard]] std::int64_t tile_scratch(matmul_problem const& problem) noexcept;

/// Dot products along the weight's rows: the weight is read once, as it lies. For few rows.
void run_dots(matmul_part const& part, float* scratch) noexcept;

/// Register tiles over packed panels of the weight. For many rows.
void run_tiles(matmul_part const& part, float* scratch) noexcept;

/// Stores sums of some rows: (input_scale * sum + bias) * column_scale, added to out if so asked.
/// Rows of `sums` have whole packs.
void finish_outputs(matmul_part const& part, std::int64_t first_row, std::int64_t rows,
                    std::int64_t first_output, std::int64_t count, float const* sums,
                    std::int64_t sums_pitch) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
