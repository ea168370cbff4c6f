#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/conv1d.hpp>
#include <mambatile/state_update.hpp>

#include "support/execute.hpp"
#include "support/refusals.hpp"
#include "support/tested_backend.hpp"

// Updating in place with slots at one end only: the rows of the other end are their own slots, so a
// slot of another row would be read and written in one call.

namespace mambatile::testing {
namespace {

TEST_CASE("state_update: in place, a slot of another row at one end is refused", "[errors]") {
  if (!is_host_backend()) SKIP("rows that meet in a slot are not looked for on a device");
  std::vector<float> x(2, 1.0F), dt(2, 1.0F), B(2, 1.0F), C(2, 1.0F), out(2, 7.0F);
  std::vector<float> states = {1.0F, 2.0F};
  std::array<float, 1> A = {-1.0F};
  struct wrong {
    std::array<std::int32_t, 2> slots;
    char const* entry;
    char const* owner;
  };
  for (auto const& [slots, entry, owner] :
       {wrong{{1, 0}, "[0] = 1", "row 1"}, wrong{{-1, 0}, "[1] = 0", "row 0"}}) {
    for (bool const reads : {true, false}) {
      state_update_arguments arguments;
      arguments.x = make_view(x.data(), {2, 1, 1});
      arguments.dt = make_view(dt.data(), {2, 1});
      arguments.A = make_view(A.data(), {1});
      arguments.B = make_view(B.data(), {2, 1, 1});
      arguments.C = make_view(C.data(), {2, 1, 1});
      arguments.out = make_view(out.data(), {2, 1, 1});
      arguments.initial_states = make_state_view(states.data(), 2, 1, 1, 1);
      arguments.final_states = make_state_view(states.data(), 2, 1, 1, 1);
      (reads ? arguments.state_source : arguments.state_target) = make_view(slots.data(), {2});
      auto const message =
          message_of<invalid_argument>([&] { execute(make_problem(arguments), arguments); });
      check_message(message, "state_update",
                    {(reads ? "state_source" : "state_target") + std::string(entry), owner});
      CHECK(states == std::vector<float>{1.0F, 2.0F});
      CHECK(out == std::vector<float>{7.0F, 7.0F});
    }
  }
}

TEST_CASE("conv1d: in place, a slot of another row at one end is refused", "[errors]") {
  if (!is_host_backend()) SKIP("rows that meet in a slot are not looked for on a device");
  std::vector<float> x(2, 1.0F), out(2, 7.0F), states = {1.0F, 2.0F};
  std::array<float, 2> weight = {1.0F, 1.0F};
  std::array<std::int32_t, 2> const slots = {1, 0};
  for (bool const reads : {true, false}) {
    conv1d_arguments arguments;
    arguments.x = make_view(x.data(), {2, 1, 1});
    arguments.weight = make_view(weight.data(), {1, 2});
    arguments.out = make_view(out.data(), {2, 1, 1});
    arguments.initial_states = make_view(states.data(), {2, 1, 1});
    arguments.final_states = make_view(states.data(), {2, 1, 1});
    (reads ? arguments.state_source : arguments.state_target) = make_view(slots.data(), {2});
    auto const message =
        message_of<invalid_argument>([&] { execute(make_problem(arguments), arguments); });
    check_message(message, "causal_conv1d",
                  {reads ? "state_source[0] = 1" : "state_target[0] = 1", "row 1"});
    CHECK(states == std::vector<float>{1.0F, 2.0F});
    CHECK(out == std::vector<float>{7.0F, 7.0F});
  }
}

}  // namespace
}  // namespace mambatile::testing
