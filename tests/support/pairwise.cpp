#include "support/pairwise.hpp"

#include <algorithm>
#include <cstddef>

#include "support/random_numbers.hpp"

namespace mambatile::testing {
namespace {

// Pairs of (factor, value) that no row has yet.
class uncovered_pairs {
 public:
  explicit uncovered_pairs(std::span<int const> levels) : levels_(levels.begin(), levels.end()) {
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      for (std::size_t j = i + 1; j < levels_.size(); ++j) {
        first_.push_back(is_open_.size());
        is_open_.insert(is_open_.end(), static_cast<std::size_t>(levels_[i] * levels_[j]), true);
        left_ += levels_[i] * levels_[j];
      }
    }
  }

  [[nodiscard]] int left() const noexcept { return left_; }

  // How many open pairs a value closes with the values chosen for the factors in `chosen`.
  [[nodiscard]] int gain(std::vector<int> const& row, std::size_t factor, int value) const {
    int count = 0;
    for (std::size_t other = 0; other < row.size(); ++other) {
      if (other != factor && row[other] >= 0) {
        count += is_open_[at(factor, value, other, row[other])] ? 1 : 0;
      }
    }
    return count;
  }

  void close(std::vector<int> const& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = i + 1; j < row.size(); ++j) {
        auto const place = at(i, row[i], j, row[j]);
        left_ -= is_open_[place] ? 1 : 0;
        is_open_[place] = false;
      }
    }
  }

 private:
  [[nodiscard]] std::size_t at(std::size_t i, int a, std::size_t j, int b) const {
    if (i > j) return at(j, b, i, a);
    auto const pair = i * levels_.size() - i * (i + 1) / 2 + (j - i - 1);
    return first_[pair] + static_cast<std::size_t>(a * levels_[j] + b);
  }

  std::vector<int> levels_;
  std::vector<std::size_t> first_;
  std::vector<bool> is_open_;
  int left_ = 0;
};

}  // namespace

std::vector<std::vector<int>> pairwise_rows(std::span<int const> levels) {
  uncovered_pairs open(levels);
  random_numbers numbers(1);
  std::vector<std::vector<int>> rows;
  while (open.left() > 0) {
    std::vector<int> best;
    int best_gain = -1;
    for (int attempt = 0; attempt < 20; ++attempt) {
      std::vector<std::size_t> order(levels.size());
      for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
        std::swap(order[i],
                  order[static_cast<std::size_t>(numbers.index(static_cast<std::int64_t>(i) + 1))]);
      }
      std::vector<int> row(levels.size(), -1);
      int total = 0;
      for (auto const factor : order) {
        auto const start = static_cast<int>(numbers.index(levels[factor]));
        int chosen = start;
        int gain = -1;
        for (int step = 0; step < levels[factor]; ++step) {
          int const value = (start + step) % levels[factor];
          int const next = open.gain(row, factor, value);
          if (next > gain) {
            gain = next;
            chosen = value;
          }
        }
        row[factor] = chosen;
        total += gain;
      }
      if (total > best_gain) {
        best_gain = total;
        best = row;
      }
    }
    open.close(best);
    rows.push_back(best);
  }
  return rows;
}

}  // namespace mambatile::testing
