#include "cpu_features.hpp"
#include "simd.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {

constinit compiled_for const compiled_target = {
    0U
#ifdef __AVX__
        | feature_avx
#endif
#ifdef __AVX2__
        | feature_avx2
#endif
#ifdef __FMA__
        | feature_fma
#endif
#ifdef __F16C__
        | feature_f16c
#endif
#ifdef __BMI2__
        | feature_bmi2
#endif
#ifdef __AVX512F__
        | feature_avx512f
#endif
#ifdef __AVX512BW__
        | feature_avx512bw
#endif
#ifdef __AVX512DQ__
        | feature_avx512dq
#endif
#ifdef __AVX512VL__
        | feature_avx512vl
#endif
#ifdef __AVX512BF16__
        | feature_avx512_bf16
#endif
#ifdef __AVX512FP16__
        | feature_avx512_fp16
#endif
    ,
    pack_abi_name,
    pack_width,
};

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
