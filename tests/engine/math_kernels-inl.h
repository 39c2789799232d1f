// SPDX-License-Identifier: Apache-2.0
// The functions of math-inl.h and lanes-inl.h as a table per level, for math_test.cpp.

#if defined(GEN_TESTS_MATH_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_TESTS_MATH_KERNELS_INL_H_
#undef GEN_TESTS_MATH_KERNELS_INL_H_
#else
#define GEN_TESTS_MATH_KERNELS_INL_H_
#endif

#include "engine/cpu/simd/math-inl.h"

#ifndef GEN_TESTS_MATH_KERNELS_ONCE_
#define GEN_TESTS_MATH_KERNELS_ONCE_
namespace gen::engine::cpu {
struct MathKernels {  // sixteen elements each
  int64_t target;     // Highway's name of the instructions
  void (*exp16)(const float* x, float* y);
  void (*exp2_weight16)(const float* x, float* y);
  void (*tanh16)(const float* x, float* y);
  void (*silu16)(const float* x, float* y);
  void (*expm1_negative16)(const float* x, float* y);
  void (*normal_tail16)(const float* x, float* y);
  void (*softplus16)(const float* x, float* y);
  float (*sum16)(const float* x);
  float (*max16)(const float* x);
  void (*from_half)(const uint16_t* x, float* y);
  void (*to_half)(const float* x, uint16_t* y);
};
}  // namespace gen::engine::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

inline void test_exp(const float* x, float* y) { store(exp(load(x)), y); }
inline void test_exp2_weight(const float* x, float* y) { store(exp2_weight(load(x)), y); }
inline void test_tanh(const float* x, float* y) { store(tanh(load(x)), y); }
inline void test_silu(const float* x, float* y) { store(silu(load(x)), y); }
// Functions of any x.
inline void test_expm1_negative(const float* x, float* y) {
  store(expm1_negative(min(splat(0.0F), load(x))), y);
}
inline void test_normal_tail(const float* x, float* y) {
  store(normal_tail(min(splat(14.5F), abs(load(x)))), y);
}
inline void test_softplus(const float* x, float* y) { store(softplus(load(x)), y); }
inline float test_sum(const float* x) { return sum_lanes(load(x)); }
inline float test_max(const float* x) { return max_lanes(load(x)); }
inline void test_from_half(const uint16_t* x, float* y) { store(load(x), y); }
inline void test_to_half(const float* x, uint16_t* y) { store(load(x), y); }

constexpr MathKernels kMath = {HWY_TARGET,       test_exp,       test_exp2_weight,
                               test_tanh,        test_silu,      test_expm1_negative,
                               test_normal_tail, test_softplus,  test_sum,
                               test_max,         test_from_half, test_to_half};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_TESTS_MATH_KERNELS_INL_H_
