#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/errors.hpp>

#include "support/tested_backend.hpp"

namespace mambatile::testing {

/// Checks that a message begins with the operator's name and holds each of the words.
inline void check_message(std::string const& message, std::string_view operator_name,
                          std::vector<std::string> const& words) {
  INFO("message: " << message);
  CHECK(message.starts_with(std::string(operator_name) + ": "));
  for (auto const& word : words) {
    INFO("missing: " << word);
    CHECK(message.find(word) != std::string::npos);
  }
}

/// Checks that the problem breaks a rule: plan throws invalid_argument, and supports gives the same
/// words as its reason.
template <class Problem>
void check_refused(Problem const& problem, std::vector<std::string> const& words) {
  auto const& tested = tested_backend();
  auto const message = message_of<invalid_argument>([&] { (void)tested.plan(problem); });
  check_message(message, Problem::operator_name, words);
  auto const answer = tested.supports(problem);
  CHECK_FALSE(answer.ok);
  CHECK(answer.reason == message);
}

}  // namespace mambatile::testing
