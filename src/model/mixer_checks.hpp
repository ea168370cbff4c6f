#pragma once

#include <cstddef>

#include <mambatile/mixer.hpp>

namespace mambatile {
inline namespace v0 {
namespace detail {

/// Throws invalid_argument where the problem breaks a rule.
void validate(mixer_problem const& problem);

/// Throws where weights or arguments do not fit the problem, so that nothing is written by the
/// first operators when a later one would refuse. Index arrays are left to the operators: the first
/// one that gets them writes states only after it has checked them.
void check(mixer_problem const& problem, mixer_weights const& weights,
           mixer_arguments const& arguments, device where, workspace_view workspace,
           std::size_t workspace_bytes);

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
