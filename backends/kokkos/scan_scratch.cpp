#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "scan_call.hpp"
#include "scan_tiles.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

constexpr std::size_t line_bytes = 64;

[[nodiscard]] std::int64_t in_packs(std::int64_t count) noexcept {
  return (count + pack_width - 1) / pack_width * pack_width;
}

// Hands out pieces of a stretch of memory; with null memory it only counts.
class cutter {
 public:
  explicit cutter(void* memory) noexcept : memory_(static_cast<char*>(memory)) {}

  template <class Element>
  Element* take(std::int64_t count) noexcept {
    auto* const piece = memory_ == nullptr ? nullptr : memory_ + used_;
    auto const bytes = static_cast<std::size_t>(count) * sizeof(Element);
    used_ += (bytes + line_bytes - 1) / line_bytes * line_bytes;
    return reinterpret_cast<Element*>(piece);
  }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }

 private:
  char* memory_;
  std::size_t used_ = 0;
};

// Returns the bytes used.
std::size_t cut(scan_layout const& layout, void* memory, scan_scratch& scratch) noexcept {
  auto const& problem = layout.problem;
  auto const tokens = in_packs(layout.longest);
  auto const dstate = in_packs(problem.dstate);
  auto const columns = in_packs(problem.headdim);
  auto const panel = std::min<std::int64_t>(columns, panel_width);
  auto const sequential = std::min(layout.longest, layout.rule.sequential);
  cutter from(memory);
  scratch.token_stride = tokens;
  scratch.dstate_stride = dstate;
  scratch.states =
      from.take<float>(layout.block_heads * panel_elements(problem.headdim, problem.dstate));
  scratch.exponents = from.take<double>(layout.block_heads);
  scratch.b = from.take<float>(layout.longest * dstate);
  scratch.c_transposed = from.take<float>(std::max(dstate * tokens, sequential * dstate));
  scratch.products = from.take<float>(layout.longest * tokens);
  scratch.weighted = from.take<float>(layout.longest * tokens);
  scratch.x = from.take<float>(layout.longest * panel);
  scratch.x_state = from.take<float>(layout.longest * panel);
  scratch.skip = from.take<float>(columns);
  scratch.tile = from.take<float>(std::max(tuning.tile_rows, recurrence_tokens) * panel);
  for (float** array : {&scratch.steps.delta, &scratch.steps.high, &scratch.steps.low,
                        &scratch.steps.row, &scratch.steps.weight}) {
    *array = from.take<float>(tokens);
  }
  return from.used();
}

}  // namespace

std::size_t scan_scratch_bytes(scan_layout const& layout) noexcept {
  scan_scratch unused{};
  return cut(layout, nullptr, unused);
}

scan_scratch cut_scratch(scan_layout const& layout, void* memory) noexcept {
  scan_scratch scratch{};
  cut(layout, memory, scratch);
  return scratch;
}

scan_row row_of(scan_call const& call, std::int64_t row) noexcept {
  if (call.layout.problem.pack != packing::cu_seqlens) {
    return {row, row, 0, call.arguments.x.extent(1)};
  }
  auto const& bounds = call.arguments.cu_seqlens;
  auto const* entries = static_cast<std::int32_t const*>(bounds.data);
  std::int64_t const begin = entries[row * bounds.stride(0)];
  std::int64_t const end = entries[(row + 1) * bounds.stride(0)];
  return {row, 0, begin, end - begin};
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
