#pragma once

#include "evaluation/random_numbers.hpp"

namespace mambatile::testing {

using evaluation::random_numbers;

}  // namespace mambatile::testing
