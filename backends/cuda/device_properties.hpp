#pragma once

#include <mambatile/plan.hpp>

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// What algorithms are chosen by.
struct device_properties {
  int architecture = 0;  ///< 90 for compute capability 9.0
  int multiprocessors = 1;
};

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
