#include "cpu_features.hpp"

#include <cstdint>
#include <string>

namespace mambatile {
inline namespace v0 {
namespace kokkos {

std::string missing_cpu_features(std::uint32_t wanted) {
  std::string missing;
#if defined(__x86_64__) || defined(__i386__)
  auto const need = [&](std::uint32_t feature, bool has, char const* name) {
    if ((wanted & feature) == 0 || has) return;
    if (!missing.empty()) missing += ", ";
    missing += name;
  };
  // __builtin_cpu_supports wants literals. It also asks whether the operating system saves the
  // registers.
  need(feature_avx, __builtin_cpu_supports("avx"), "AVX");
  need(feature_avx2, __builtin_cpu_supports("avx2"), "AVX2");
  need(feature_fma, __builtin_cpu_supports("fma"), "FMA");
  need(feature_f16c, __builtin_cpu_supports("f16c"), "F16C");
  need(feature_bmi2, __builtin_cpu_supports("bmi2"), "BMI2");
  need(feature_avx512f, __builtin_cpu_supports("avx512f"), "AVX-512F");
  need(feature_avx512bw, __builtin_cpu_supports("avx512bw"), "AVX-512BW");
  need(feature_avx512dq, __builtin_cpu_supports("avx512dq"), "AVX-512DQ");
  need(feature_avx512vl, __builtin_cpu_supports("avx512vl"), "AVX-512VL");
  need(feature_avx512_bf16, __builtin_cpu_supports("avx512bf16"), "AVX-512 BF16");
  need(feature_avx512_fp16, __builtin_cpu_supports("avx512fp16"), "AVX-512 FP16");
#else
  static_cast<void>(wanted);
#endif
  return missing;
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
