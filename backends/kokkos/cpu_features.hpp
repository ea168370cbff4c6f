#pragma once

#include <cstdint>
#include <string>

// Which instruction sets the backend was compiled for, and whether this CPU has them.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

enum cpu_feature : std::uint32_t {
  feature_avx = 1U << 0U,
  feature_avx2 = 1U << 1U,
  feature_fma = 1U << 2U,
  feature_f16c = 1U << 3U,
  feature_bmi2 = 1U << 4U,
  feature_avx512f = 1U << 5U,
  feature_avx512bw = 1U << 6U,
  feature_avx512dq = 1U << 7U,
  feature_avx512vl = 1U << 8U,
  feature_avx512_bf16 = 1U << 9U,
  feature_avx512_fp16 = 1U << 10U,
};

/// What the arithmetic part of the backend was compiled for. Data, so that reading it needs none of
/// it.
struct compiled_for {
  std::uint32_t features;
  char const* instruction_set;
  int pack_width;  ///< f32 lanes of one register
};
extern compiled_for const compiled_target;

/// The features in `wanted` that this CPU or its operating system lacks, as text; empty when it has
/// them all.
[[nodiscard]] std::string missing_cpu_features(std::uint32_t wanted);

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
