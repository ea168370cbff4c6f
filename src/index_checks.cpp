#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <fmt/format.h>

#include "argument_checks.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

struct slot_use {
  std::int64_t entry;  // row * tokens + token
  std::int32_t slot;

  friend bool operator<(slot_use const& left, slot_use const& right) noexcept {
    return left.slot != right.slot ? left.slot < right.slot : left.entry < right.entry;
  }
};

// Slots are (rows) or (rows, tokens).
std::int64_t tokens_of(const_tensor_view const& slots) {
  return slots.rank == 1 ? 1 : slots.extent(1);
}

std::int32_t slot_at(const_tensor_view const& slots, std::int64_t row, std::int64_t token) {
  return slots.rank == 1 ? index_at(slots, row) : index_at(slots, row, token);
}

std::string place(const_tensor_view const& slots, std::int64_t row, std::int64_t token) {
  return slots.rank == 1 ? fmt::format("[{}]", row) : fmt::format("[{}, {}]", row, token);
}

}  // namespace

void check_cu_seqlens(argument_checker const& checker, const_tensor_view const& cu_seqlens,
                      std::int64_t tokens) {
  auto const entries = cu_seqlens.extent(0);
  std::int32_t previous = index_at(cu_seqlens, 0);
  if (previous != 0) {
    checker.fail(fmt::format("cu_seqlens[0] = {}, but it must be 0", previous));
  }
  for (std::int64_t i = 1; i < entries; ++i) {
    auto const current = index_at(cu_seqlens, i);
    if (current < previous) {
      checker.fail(
          fmt::format("cu_seqlens[{}] = {} is less than cu_seqlens[{}] = {}; it must not "
                      "decrease",
                      i, current, i - 1, previous));
    }
    previous = current;
  }
  if (previous > tokens) {
    checker.fail(
        fmt::format("cu_seqlens[{}] = {} is beyond seqlen = {}", entries - 1, previous, tokens));
  }
}

void check_seq_idx(argument_checker const& checker, const_tensor_view const& seq_idx) {
  for (std::int64_t b = 0; b < seq_idx.extent(0); ++b) {
    std::int32_t previous = 0;
    for (std::int64_t l = 0; l < seq_idx.extent(1); ++l) {
      auto const current = index_at(seq_idx, b, l);
      if (current == -1) continue;
      if (current < -1) {
        checker.fail(fmt::format(
            "seq_idx[{}, {}] = {}, but entries are sequence numbers >= 0, or -1 for padding", b, l,
            current));
      }
      if (current < previous) {
        checker.fail(
            fmt::format("seq_idx[{}, {}] = {} is less than {} before it; its entries >= 0 "
                        "must not decrease",
                        b, l, current, previous));
      }
      previous = current;
    }
  }
}

void check_slots(argument_checker const& checker, named_tensor const& rows_of_slots,
                 std::int64_t slots) {
  auto const& view = rows_of_slots.view;
  for (std::int64_t row = 0; row < view.extent(0); ++row) {
    for (std::int64_t token = 0; token < tokens_of(view); ++token) {
      auto const slot = slot_at(view, row, token);
      if (slot < -1 || slot >= slots) {
        checker.fail(
            fmt::format("{}{} = {} is out of range; the pool has {} slots, and -1 means none",
                        rows_of_slots.name, place(view, row, token), slot, slots));
      }
    }
  }
}

void check_own_slots(argument_checker const& checker, named_tensor const& rows_of_slots) {
  auto const& view = rows_of_slots.view;
  for (std::int64_t row = 0; row < view.extent(0); ++row) {
    for (std::int64_t token = 0; token < tokens_of(view); ++token) {
      auto const slot = slot_at(view, row, token);
      if (slot != -1 && slot != row) {
        checker.fail(fmt::format(
            "{}{} = {}, but final_states is initial_states and row {} has that state; expected the "
            "row's own, or -1",
            rows_of_slots.name, place(view, row, token), slot, slot));
      }
    }
  }
}

bool all_none(const_tensor_view const& slots, std::int64_t row) noexcept {
  for (std::int64_t token = 0; token < tokens_of(slots); ++token) {
    if (slot_at(slots, row, token) != -1) return false;
  }
  return true;
}

std::size_t slot_scratch_bytes(std::int64_t entries) noexcept {
  return static_cast<std::size_t>(entries) * sizeof(slot_use);
}

void check_slot_targets(argument_checker const& checker, const_tensor_view const& target,
                        const_tensor_view const& source, accepted_tokens const& accepted,
                        bool same_pool, void* scratch) {
  auto const rows = target.extent(0);
  auto const tokens = tokens_of(target);
  auto* const uses = static_cast<slot_use*>(scratch);
  std::size_t count = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t token = 0; token < tokens; ++token) {
      auto const slot = slot_at(target, row, token);
      if (slot >= 0) uses[count++] = {row * tokens + token, slot};
    }
  }
  auto const place_of = [&](slot_use const& use) {
    return place(target, use.entry / tokens, use.entry % tokens);
  };
  std::span<slot_use> const written(uses, count);
  std::sort(written.begin(), written.end());
  for (std::size_t i = 1; i < count; ++i) {
    if (written[i].slot == written[i - 1].slot) {
      checker.fail(
          fmt::format("state_target{} and state_target{} are both slot {}; a slot is written at "
                      "most once a call",
                      place_of(written[i - 1]), place_of(written[i]), written[i].slot));
    }
  }
  if (!source || !same_pool) return;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (all_none(source, row)) continue;
    auto const slot = source_slot(source, accepted, row);
    if (slot < 0) continue;
    auto const writer = std::lower_bound(written.begin(), written.end(), slot_use{0, slot});
    if (writer != written.end() && writer->slot == slot && writer->entry / tokens != row) {
      checker.fail(
          fmt::format("state_source of row {} reads slot {}, which state_target{} writes in the "
                      "same call",
                      row, slot, place_of(*writer)));
    }
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
