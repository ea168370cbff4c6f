#pragma once

#include <array>
#include <cstdint>
#include <string_view>

// Shapes that matter, by name. Tests and benchmarks take theirs from here.

namespace mambatile::evaluation {

struct scan_shape {
  std::string_view name;
  std::int64_t nheads = 0;
  std::int64_t headdim = 0;
  std::int64_t ngroups = 1;
  std::int64_t dstate = 0;
  std::int64_t batch = 1;  ///< what a benchmark takes when it is not told
};

/// One layer of each model, then shapes of other implementations' published examples.
inline constexpr std::array<scan_shape, 17> scan_shapes = {{
    {"mamba2-130m", 24, 64, 1, 128},
    {"mamba2-370m", 32, 64, 1, 128},
    {"mamba2-780m", 48, 64, 1, 128},
    {"mamba2-1.3b", 64, 64, 1, 128},
    {"mamba2-2.7b", 80, 64, 1, 128},
    {"codestral-mamba-7b", 128, 64, 8, 128},
    {"nemotron-h-8b", 128, 64, 8, 128},
    {"granite-4-tiny", 48, 64, 1, 128},
    {"granite-4-small", 128, 64, 1, 128},
    {"bamba-9b", 128, 64, 1, 128},
    {"zamba2-7b", 112, 64, 2, 64},
    {"falcon-h1-0.5b", 24, 64, 1, 128},
    {"falcon-h1-34b", 32, 128, 2, 256},
    {"cutile-n64", 8, 64, 1, 64, 4},
    {"cutile-n128", 8, 64, 1, 128, 4},
    {"cutile-n256", 8, 64, 1, 256, 4},
    {"cutile-n512", 8, 64, 1, 512, 4},
}};

/// The shape of that name, or null.
[[nodiscard]] constexpr scan_shape const* find_scan_shape(std::string_view name) noexcept {
  for (auto const& shape : scan_shapes) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

}  // namespace mambatile::evaluation
