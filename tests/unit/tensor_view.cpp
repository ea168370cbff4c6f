#include <mambatile/tensor_view.hpp>

#include <cstdint>

#include <catch2/catch_test_macros.hpp>

namespace mambatile::testing {
namespace {

TEST_CASE("tensor_view: absent by default", "[unit]") {
  tensor_view const absent;
  CHECK_FALSE(absent);
  CHECK(absent.size() == 0);
  CHECK(shape_string(absent) == "()");
}

TEST_CASE("tensor_view: row-major and strided", "[unit]") {
  float data[64] = {};
  auto const dense = make_view(data, {2, 3, 4});
  CHECK(dense);
  CHECK(dense.rank == 3);
  CHECK(dense.size() == 24);
  CHECK(dense.type == dtype::f32);
  CHECK(dense.where == device{});
  CHECK(dense.data == data);
  CHECK(dense.stride(0) == 12);
  CHECK(dense.stride(1) == 4);
  CHECK(dense.stride(2) == 1);
  CHECK(shape_string(dense) == "(2, 3, 4)");

  auto const strided = make_view(data, {2, 3}, {1, 7}, device{device_kind::cuda, 1});
  CHECK(strided.stride(0) == 1);
  CHECK(strided.stride(1) == 7);
  CHECK(to_string(strided.where) == "cuda:1");
  CHECK(to_string(device{}) == "host");

  auto const empty = make_view(data, {2, 0, 4});
  CHECK(empty);
  CHECK(empty.size() == 0);
}

TEST_CASE("tensor_view: a view to write is one to read", "[unit]") {
  std::int32_t data[6] = {};
  tensor_view const written = make_view(data, {6});
  const_tensor_view const read = written;
  CHECK(read.data == data);
  CHECK(read.type == dtype::i32);
  CHECK(read.extent(0) == 6);
  std::int32_t const constant[2] = {};
  STATIC_CHECK(std::is_same_v<decltype(make_view(constant, {2})), const_tensor_view>);
}

TEST_CASE("tensor_view: sizes beyond 32 bits", "[unit]") {
  float data = 0;
  auto const huge = make_view(&data, {1 << 20, 1 << 20, 1 << 10});
  CHECK(huge.size() == std::int64_t{1} << 50);
  CHECK(huge.stride(0) == std::int64_t{1} << 30);
}

TEST_CASE("tensor_view: states in both storage orders", "[unit]") {
  bfloat16 data[2 * 3 * 4 * 5] = {};
  auto const rows = make_state_view(data, 2, 3, 4, 5);
  auto const columns = make_state_view(data, 2, 3, 4, 5, state_layout::headdim_innermost);
  for (auto const& view : {rows, columns}) {
    CHECK(shape_string(view) == "(2, 3, 4, 5)");
    CHECK(view.type == dtype::bf16);
    CHECK(view.stride(0) == 60);
    CHECK(view.stride(1) == 20);
  }
  CHECK(rows.stride(2) == 5);
  CHECK(rows.stride(3) == 1);
  CHECK(columns.stride(2) == 1);
  CHECK(columns.stride(3) == 4);
}

}  // namespace
}  // namespace mambatile::testing
