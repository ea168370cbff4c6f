#include "scan_regime.hpp"

#include <cstdint>
#include <random>
#include <vector>

#include <catch2/catch_test_macros.hpp>

namespace mambatile::kokkos {
namespace {

constexpr scan_rule rule{32, 128, 8};

std::vector<scan_piece> pieces_of(std::int64_t length, std::int64_t every, bool from_zero,
                                  std::vector<std::int32_t> const& ids = {}) {
  scan_walker walker(rule, length, every, ids.empty() ? nullptr : ids.data(), 1, from_zero);
  std::vector<scan_piece> result;
  for (scan_piece piece{}; walker.next(piece);) result.push_back(piece);
  return result;
}

}  // namespace

TEST_CASE("the regime follows length and start") {
  CHECK(chunk_of_run(rule, 1, true) == 1);
  CHECK(chunk_of_run(rule, 100, true) == 100);
  CHECK(chunk_of_run(rule, 128, true) == 128);
  CHECK(chunk_of_run(rule, 129, true) == 26);
  CHECK(chunk_of_run(rule, 100, false) == 25);
  CHECK(chunk_of_run(rule, 512, false) == 32);
  CHECK(chunk_of_run(rule, 33, false) == 17);
  CHECK(choose_scan_rule(scan_tunings[0], 0).chunk == scan_tunings[0].chunk);
  CHECK(choose_scan_rule(scan_tunings[0], 7).chunk == 7);
  CHECK(choose_scan_rule(scan_tunings[0], 100000).chunk == largest_chunk);
}

TEST_CASE("pieces cover a row once, in order, and end where snapshots are due") {
  for (std::int64_t length : {0, 1, 31, 32, 33, 128, 129, 500}) {
    for (std::int64_t every : {0, 1, 7, 32, 64, 600}) {
      std::int64_t at = 0;
      std::int64_t snapshots = 0;
      for (auto const& piece : pieces_of(length, every, length % 2 == 0)) {
        CHECK(piece.begin == at);
        CHECK(piece.count >= 1);
        CHECK(piece.count <= longest_piece(rule, length));
        CHECK_FALSE(piece.padding);
        at += piece.count;
        CHECK(piece.snapshot_after == (every != 0 && at % every == 0));
        if (piece.snapshot_after) ++snapshots;
        if (every != 0) CHECK(piece.begin / every == (at - 1) / every);
      }
      CHECK(at == length);
      if (every != 0) CHECK(snapshots == length / every);
    }
  }
}

TEST_CASE("pieces do not cross sequences, and a new sequence starts from zero") {
  std::vector<std::int32_t> const ids = {-1, 3, 3, -1, 3, 5, 5, 5, -1, -1, 9};
  auto const pieces = pieces_of(static_cast<std::int64_t>(ids.size()), 0, false, ids);
  std::int32_t carried = -1;
  std::int64_t at = 0;
  for (auto const& piece : pieces) {
    CHECK(piece.begin == at);
    auto const id = ids[static_cast<std::size_t>(at)];
    for (std::int64_t i = 0; i < piece.count; ++i) {
      CHECK(ids[static_cast<std::size_t>(at + i)] == id);
    }
    CHECK(piece.padding == (id < 0));
    CHECK(piece.resets == (id >= 0 && carried >= 0 && id != carried));
    if (id >= 0) carried = id;
    at += piece.count;
  }
  CHECK(at == static_cast<std::int64_t>(ids.size()));
}

TEST_CASE("a sequence's pieces do not depend on what stands beside it") {
  std::vector<std::int32_t> ids(40, 1);
  ids.insert(ids.end(), 77, 2);
  auto const alone = pieces_of(77, 0, true);
  auto const packed = pieces_of(117, 0, true, ids);
  std::vector<std::int64_t> second;
  for (auto const& piece : packed) {
    if (piece.begin >= 40) second.push_back(piece.count);
  }
  REQUIRE(second.size() == alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) CHECK(second[i] == alone[i].count);
}

TEST_CASE("shares get each part once and nearly equal work") {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::int64_t> lengths(1 + random() % 40);
    std::int64_t const parts = 1 + static_cast<std::int64_t>(random() % 30);
    int const shares = 1 + static_cast<int>(random() % 9);
    std::int64_t total = 0;
    std::int64_t longest = 0;
    for (auto& length : lengths) {
      length = static_cast<std::int64_t>(random() % 65);
      total += parts * work_of_row(length);
      longest = std::max(longest, work_of_row(length));
    }
    std::vector<std::int64_t> next(lengths.size(), 0);
    for (int share = 0; share < shares; ++share) {
      auto const range = range_of_share(total, shares, share);
      std::int64_t offset = 0;
      std::int64_t work = 0;
      for (std::size_t row = 0; row < lengths.size(); ++row) {
        auto const each = work_of_row(lengths[row]);
        auto const mine = parts_in_range(range, offset, each, parts);
        if (mine.begin < mine.end) {
          CHECK(mine.begin == next[row]);
          next[row] = mine.end;
          work += (mine.end - mine.begin) * each;
        }
        offset += parts * each;
      }
      CHECK(work <= total / shares + 1 + longest);
    }
    for (auto const done : next) CHECK(done == parts);
  }
}

TEST_CASE("heads are split where whole ones would leave threads idle") {
  CHECK(splits_heads(1, 1, 2));
  CHECK(splits_heads(1, 3, 2));
  CHECK_FALSE(splits_heads(1, 24, 2));
  CHECK_FALSE(splits_heads(8, 2, 2));
  CHECK_FALSE(splits_heads(1, 1, 1));
}

}  // namespace mambatile::kokkos
