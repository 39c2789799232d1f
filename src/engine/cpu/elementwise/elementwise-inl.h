// SPDX-License-Identifier: Apache-2.0
// Bodies of elementwise.h, compiled once per target.
//   Work:   sixteen elements a step; a last partial step goes through a padded copy.
//   Needs:  no alignment; y may be an input, since a step loads before it stores.
//   Error:  add exact; silu gated <= 5 ulp (exp 2, two additions and divisions, product); others
//           are measured in tests/engine/elementwise_test.cpp.

#if defined(GEN_ENGINE_CPU_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_ELEMENTWISE_INL_H_
#undef GEN_ENGINE_CPU_ELEMENTWISE_INL_H_
#else
#define GEN_ENGINE_CPU_ELEMENTWISE_INL_H_
#endif

#include "engine/cpu/base/kernels.h"
#include "engine/cpu/elementwise/elementwise.h"
#include "engine/cpu/simd/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

inline void add_rows(const float* a, const float* b, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(add(load(a + i), load(b + i)), y + i);
  if (i < n) store_first(add(load_first(a + i, n - i), load_first(b + i, n - i)), y + i, n - i);
}

template <Act kAct>
void gated_rows(const float* gate, const float* up, float* y, int64_t n,
                const Activation& activation) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(gated<kAct>(load(gate + i), load(up + i), activation), y + i);
  }
  if (i < n) {
    const Lanes16 last =
        gated<kAct>(load_first(gate + i, n - i), load_first(up + i, n - i), activation);
    store_first(last, y + i, n - i);
  }
}

template <Act kAct>
void activate_rows(const float* x, float* y, int64_t n, const Activation& activation) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(activated<kAct>(load(x + i), activation), y + i);
  if (i < n) store_first(activated<kAct>(load_first(x + i, n - i), activation), y + i, n - i);
}

inline void to_half_rows(const float* x, uint16_t* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(load(x + i), y + i);
  if (i < n) store_first(load_first(x + i, n - i), y + i, n - i);
}

constexpr ElementwiseKernels kElementwise = {
    add_rows,
    {gated_rows<Act::kNone>, gated_rows<Act::kSilu>, gated_rows<Act::kGelu>,
     gated_rows<Act::kRelu2>, gated_rows<Act::kClampedSwiglu>, gated_rows<Act::kScaled>,
     gated_rows<Act::kSoftCapped>, gated_rows<Act::kSigmoid>, gated_rows<Act::kGeluErf>,
     gated_rows<Act::kXielu>, gated_rows<Act::kSoftplus>, gated_rows<Act::kCutSwiglu>},
    {activate_rows<Act::kNone>, activate_rows<Act::kSilu>, activate_rows<Act::kGelu>,
     activate_rows<Act::kRelu2>, nullptr, activate_rows<Act::kScaled>,
     activate_rows<Act::kSoftCapped>, activate_rows<Act::kSigmoid>, activate_rows<Act::kGeluErf>,
     activate_rows<Act::kXielu>, activate_rows<Act::kSoftplus>, nullptr},
    to_half_rows};
static_assert(filled(kElementwise.gated) == kActs && filled(kElementwise.activate) == kActs - 2,
              "an element for each activation");

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_ELEMENTWISE_INL_H_
