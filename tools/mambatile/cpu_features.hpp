#pragma once

#include <string>
#include <vector>

namespace mambatile::program {

struct cpu_description {
  std::string model;
  std::vector<std::string> features;  ///< those that matter to numerical code
};

/// What the operating system says about the first processor; empty where it says nothing.
[[nodiscard]] cpu_description describe_cpu();

}  // namespace mambatile::program
