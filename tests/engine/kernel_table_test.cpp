// SPDX-License-Identifier: Apache-2.0
// Proves which kernels each CPU level uses. Tables are only compared, so levels that this machine
// does not run are here, too.
#include "engine/cpu/kernel_table.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/cpu/linear_bf16.h"
#include "engine/cpu/linear_kernels.h"
#include "engine/cpu/linear_quant_simd.h"
#include "engine/cpu/linear_scalar.h"
#include "engine/cpu/linear_vnni.h"

namespace gen::engine::cpu {
namespace {

/// What a level uses: of lanes and of quantised products a copy by number, of BF16 the dots or not.
struct Choice {
  CpuLevel level;
  int lanes;
  int quantised;
  bool dots;
};
constexpr Choice kChoices[] = {
    {CpuLevel::kScalar, 0, 0, false},
#if defined(__x86_64__)
    {CpuLevel::kAvx2, 1, 1, false},
#endif
#if GEN_VNNI  // without copies for AVX-512 no level above AVX2 is ever detected
    {CpuLevel::kAvx512, 2, 2, false},    {CpuLevel::kAvx512Vnni, 2, 3, false},
    {CpuLevel::kAvx512Bf16, 2, 3, true},
#endif
#if defined(__aarch64__)
    {CpuLevel::kNeon, 1, 1, false},
#else
    {CpuLevel::kNeon, 0, 0, false},
#endif
};

TEST(KernelTable, LevelsShareTheCopiesThatTheyShould) {
  for (const Choice& a : kChoices) {
    for (const Choice& b : kChoices) {
      SCOPED_TRACE(std::string(cpu_level_name(a.level)) + " and " + cpu_level_name(b.level));
      const KernelTable x = kernel_table(a.level);
      const KernelTable y = kernel_table(b.level);
      const bool lanes = a.lanes == b.lanes;
      EXPECT_EQ(x.activations == y.activations, lanes);
      EXPECT_EQ(x.attention == y.attention, lanes);
      EXPECT_EQ(x.elementwise == y.elementwise, lanes);
      EXPECT_EQ(x.low_rank == y.low_rank, lanes);
      EXPECT_EQ(x.rms_norm == y.rms_norm, lanes);
      EXPECT_EQ(x.scan == y.scan, lanes);
      EXPECT_EQ(x.linear_float->f32 == y.linear_float->f32, lanes);
      EXPECT_EQ(x.linear_float->f16 == y.linear_float->f16, lanes);
      EXPECT_EQ(x.linear_float->bf16 == y.linear_float->bf16, lanes && a.dots == b.dots);
      for (int32_t act = 0; act < kActs; ++act) {
        const auto gated = x.linear_float->finish_gated[act];
        EXPECT_EQ(gated == y.linear_float->finish_gated[act], lanes);
      }
      EXPECT_EQ(x.linear_quant == y.linear_quant, a.quantised == b.quantised);
    }
  }
}

TEST(KernelTable, ProductsAreOfTheLevelsUnits) {
  EXPECT_EQ(kernel_table(CpuLevel::kScalar).linear_quant, quant_kernels_scalar());
#if defined(__x86_64__)
  EXPECT_EQ(kernel_table(CpuLevel::kAvx2).linear_quant, quant_kernels_simd(CpuLevel::kAvx2));
#endif
#if GEN_VNNI
  EXPECT_EQ(kernel_table(CpuLevel::kAvx512).linear_quant, quant_kernels_simd(CpuLevel::kAvx512));
  EXPECT_EQ(kernel_table(CpuLevel::kAvx512Vnni).linear_quant, quant_kernels_vnni());
  EXPECT_EQ(kernel_table(CpuLevel::kAvx512Bf16).linear_quant, quant_kernels_vnni());
  EXPECT_EQ(kernel_table(CpuLevel::kAvx512Bf16).linear_float->bf16, linear_bf16_dots);
#endif
#if defined(__aarch64__)
  EXPECT_EQ(kernel_table(CpuLevel::kNeon).linear_quant, quant_kernels_simd(CpuLevel::kNeon));
#endif
}

}  // namespace
}  // namespace gen::engine::cpu
