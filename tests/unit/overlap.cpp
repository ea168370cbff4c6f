#include "overlap.hpp"

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "support/random_numbers.hpp"
#include "support/strided.hpp"

namespace mambatile::testing {
namespace {

using detail::is_identical;
using detail::may_overlap;
using detail::may_overlap_itself;

std::array<float, 4096> memory;

TEST_CASE("overlap: separate ranges", "[unit]") {
  CHECK_FALSE(may_overlap(make_view(&memory[0], {10}), make_view(&memory[10], {10})));
  CHECK(may_overlap(make_view(&memory[0], {11}), make_view(&memory[10], {10})));
  CHECK(may_overlap(make_view(&memory[5], {1}), make_view(&memory[0], {10})));
}

TEST_CASE("overlap: nothing overlaps what is empty or elsewhere", "[unit]") {
  auto const here = make_view(&memory[0], {10});
  CHECK_FALSE(may_overlap(here, make_view(&memory[0], {0})));
  CHECK_FALSE(may_overlap(here, const_tensor_view{}));
  CHECK_FALSE(may_overlap(here, make_view(&memory[0], {10}, device{device_kind::cuda, 0})));
  CHECK_FALSE(may_overlap_itself(make_view(&memory[0], {0, 3}, {0, 0})));
}

TEST_CASE("overlap: columns of one buffer", "[unit]") {
  // Rows of 20: [x (2, 3), B (4), out (2, 3), rest].
  auto const columns = [](std::int64_t begin, std::int64_t outer, std::int64_t inner) {
    return make_view(&memory[static_cast<std::size_t>(begin)], {3, 7, outer, inner},
                     {140, 20, inner, 1});
  };
  auto const x = columns(0, 2, 3);
  auto const B = columns(6, 1, 4);
  auto const out = columns(10, 2, 3);
  CHECK_FALSE(may_overlap(x, B));
  CHECK_FALSE(may_overlap(B, x));
  CHECK_FALSE(may_overlap(x, out));
  CHECK_FALSE(may_overlap(B, out));
  CHECK(may_overlap(x, columns(5, 1, 4)));
  CHECK(may_overlap(columns(9, 2, 3), B));
  // Columns that run over the end of a row reach into the next one.
  CHECK(may_overlap(x, columns(16, 1, 5)));
  CHECK_FALSE(may_overlap(x, columns(16, 1, 4)));
}

TEST_CASE("overlap: types of other sizes in one buffer", "[unit]") {
  auto* const halves = reinterpret_cast<bfloat16*>(memory.data());
  auto const floats = make_view(&memory[0], {5, 4}, {10, 1});
  CHECK_FALSE(may_overlap(floats, make_view(halves + 8, {5, 12}, {20, 1})));
  CHECK(may_overlap(floats, make_view(halves + 7, {5, 12}, {20, 1})));
}

TEST_CASE("overlap: negative and zero strides", "[unit]") {
  auto const backwards = make_view(&memory[30], {4, 5}, {-10, 1});
  CHECK(may_overlap(backwards, make_view(&memory[0], {1})));
  CHECK(may_overlap(backwards, make_view(&memory[34], {1})));
  CHECK_FALSE(may_overlap(backwards, make_view(&memory[35], {1})));
  CHECK_FALSE(may_overlap(backwards, make_view(&memory[5], {4, 5}, {10, 1})));
  CHECK_FALSE(may_overlap_itself(backwards));
  CHECK(may_overlap_itself(make_view(&memory[0], {4, 5}, {0, 1})));
}

TEST_CASE("overlap: elements of one view", "[unit]") {
  CHECK_FALSE(may_overlap_itself(make_view(&memory[0], {2, 3, 4})));
  CHECK_FALSE(may_overlap_itself(make_view(&memory[0], {2, 3, 4}, {1, 2, 6})));
  CHECK_FALSE(may_overlap_itself(make_view(&memory[0], {1, 3}, {0, 1})));
  CHECK(may_overlap_itself(make_view(&memory[0], {2, 3}, {2, 1})));
  CHECK(may_overlap_itself(make_view(&memory[0], {2, 2}, {1, 1})));
}

TEST_CASE("overlap: identical views", "[unit]") {
  auto const view = make_view(&memory[0], {1, 3, 4});
  CHECK(is_identical(view, view));
  auto other = view;
  other.strides[0] = 77;  // of an axis with one element
  CHECK(is_identical(view, other));
  other.strides[1] = 77;
  CHECK_FALSE(is_identical(view, other));
  other = view;
  other.extents[1] = 2;
  CHECK_FALSE(is_identical(view, other));
  other = view;
  other.type = dtype::i32;
  CHECK_FALSE(is_identical(view, other));
  CHECK_FALSE(is_identical(view, make_view(&memory[1], {1, 3, 4})));
}

// Against the definition: no answer "apart" may be wrong.
TEST_CASE("overlap: agrees with the sets of elements", "[unit]") {
  random_numbers numbers(3);
  auto const draw = [&] {
    auto view = make_view(&memory[static_cast<std::size_t>(1000 + numbers.index(40))],
                          {1 + numbers.index(4), 1 + numbers.index(4), 1 + numbers.index(3)},
                          {numbers.index(30) - 10, numbers.index(12) - 3, numbers.index(3)});
    return view;
  };
  auto const elements = [](const_tensor_view const& view) {
    std::multiset<std::int64_t> all;
    auto const begin = static_cast<float const*>(view.data) - memory.data();
    for_each_offset(view, [&](std::int64_t offset) { all.insert(begin + offset); });
    return all;
  };
  int wrong = 0;
  int told_apart = 0;
  int apart = 0;
  for (int round = 0; round < 20000; ++round) {
    auto const left = draw();
    auto const right = draw();
    auto const of_left = elements(left);
    auto const of_right = elements(right);
    bool shares = false;
    for (auto const element : of_left) shares = shares || of_right.count(element) != 0;
    bool const answer = may_overlap(left, right);
    wrong += shares && !answer ? 1 : 0;
    apart += shares ? 0 : 1;
    told_apart += answer ? 0 : 1;
    std::set<std::int64_t> const distinct(of_left.begin(), of_left.end());
    wrong += distinct.size() != of_left.size() && !may_overlap_itself(left) ? 1 : 0;
  }
  CHECK(wrong == 0);
  // It must not call everything shared either.
  CHECK(told_apart > apart / 3);
}

}  // namespace
}  // namespace mambatile::testing
