#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "operator_plan.hpp"
#include "operators.hpp"
#include "runtime.hpp"
#include "scan_call.hpp"
#include "scan_tiles.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

[[nodiscard]] std::int64_t most_rows(scan_problem const& problem) noexcept {
  return problem.pack == packing::cu_seqlens ? problem.max_sequences : problem.max_batch;
}

[[nodiscard]] scan_layout make_layout(scan_problem const& problem) {
  scan_layout layout{};
  layout.problem = problem;
  layout.rule = choose_scan_rule(tuning, problem.chunk_size);
  layout.longest = longest_piece(layout.rule, problem.max_seqlen);
  layout.threads = plan_threads(problem.threads);
  // A share's states fit its cache, and all shares' together are no more than the call's states
  // and one more a thread.
  auto const state_bytes =
      panel_elements(problem.headdim, problem.dstate) * std::int64_t{sizeof(float)};
  auto const heads = most_rows(problem) * problem.nheads;
  auto const fair = (heads + layout.threads - 1) / layout.threads;
  layout.block_heads =
      std::clamp<std::int64_t>(tuning.block_bytes / std::max<std::int64_t>(state_bytes, 1), 1,
                               std::max<std::int64_t>(1, std::min(fair, problem.nheads)));
  layout.share_bytes = detail::round_to_alignment(scan_scratch_bytes(layout));
  return layout;
}

// Parts [begin, end) of a row, each a pack of columns of one head, as at most three rectangles.
template <class Visit>
void for_each_rectangle(work_range const& parts, std::int64_t parts_of_head, std::int64_t headdim,
                        std::int64_t part_columns, Visit const& visit) {
  auto const columns = [&](std::int64_t first, std::int64_t end) {
    return headdim_range{first * part_columns, std::min(end * part_columns, headdim)};
  };
  std::int64_t at = parts.begin;
  while (at < parts.end) {
    std::int64_t const head = at / parts_of_head;
    std::int64_t const first = at % parts_of_head;
    if (first == 0 && parts.end - at >= parts_of_head) {
      std::int64_t const end_head = parts.end / parts_of_head;
      visit(scan_part{head, end_head, columns(0, parts_of_head)});
      at = end_head * parts_of_head;
    } else {
      std::int64_t const end = std::min(parts_of_head, first + parts.end - at);
      visit(scan_part{head, head + 1, columns(first, end)});
      at += end - first;
    }
  }
}

class scan_plan_implementation final : public detail::plan_implementation<scan_problem> {
 public:
  explicit scan_plan_implementation(scan_problem const& problem) : layout_(make_layout(problem)) {
    description_ = fmt::format("kokkos {} chunk={} single={} tile={}x{} threads={}", pack_abi_name,
                               layout_.rule.chunk, layout_.rule.single_chunk, tuning.tile_rows,
                               panel_width, layout_.threads);
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return layout_.share_bytes * static_cast<std::size_t>(layout_.threads);
  }
  [[nodiscard]] std::string_view description() const noexcept override { return description_; }
  [[nodiscard]] int threads() const noexcept override { return layout_.threads; }

  void execute(scan_arguments const& arguments, workspace_view workspace,
               queue const& on) const override {
    scan_call const call{layout_, arguments};
    auto const& problem = layout_.problem;
    auto const rows = rows_of(call);
    int const shares = on.threads == 0 ? layout_.threads : on.threads;
    if (rows == 0 || problem.nheads == 0) return;

    // A part: one head, or one pack of its columns.
    bool const splits = splits_heads(rows, problem.nheads, shares);
    auto const columns = std::max<std::int64_t>(problem.headdim, 1);
    auto const part_columns = splits ? std::int64_t{pack_width} : columns;
    auto const parts_of_head = (columns + part_columns - 1) / part_columns;
    auto const parts = problem.nheads * parts_of_head;
    std::int64_t total = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      total += parts * work_of_row(row_of(call, row).length);
    }
    for_each_share(shares, [&](int share) noexcept {
      auto scratch =
          cut_scratch(layout_, static_cast<char*>(workspace.data) +
                                   static_cast<std::size_t>(share) * layout_.share_bytes);
      auto const range = range_of_share(total, shares, share);
      std::int64_t offset = 0;
      for (std::int64_t index = 0; index < rows && offset < range.end; ++index) {
        auto const row = row_of(call, index);
        auto const each = work_of_row(row.length);
        auto const mine = parts_in_range(range, offset, each, parts);
        for_each_rectangle(mine, parts_of_head, problem.headdim, part_columns,
                           [&](scan_part const& part) { run_blocks(call, row, part, scratch); });
        offset += parts * each;
      }
    });
  }

 private:
  // As many heads at a time as the scratch has states for.
  void run_blocks(scan_call const& call, scan_row const& row, scan_part const& part,
                  scan_scratch& scratch) const noexcept {
    for (auto head = part.first_head; head < part.end_head; head += layout_.block_heads) {
      scan_part const block{head, std::min(head + layout_.block_heads, part.end_head),
                            part.columns};
      switch (layout_.problem.io) {
        case dtype::bf16: run_part<bfloat16>(call, row, block, scratch); break;
        case dtype::f16: run_part<float16>(call, row, block, scratch); break;
        default: run_part<float>(call, row, block, scratch); break;
      }
    }
  }

  scan_layout layout_;
  std::string description_;
};

}  // namespace

support scan_support(scan_problem const& /*problem*/) { return {true, {}}; }

std::shared_ptr<detail::plan_implementation<scan_problem> const> make_scan_plan(
    scan_problem const& problem) {
  return std::make_shared<scan_plan_implementation const>(problem);
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
