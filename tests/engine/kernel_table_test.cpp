// SPDX-License-Identifier: Apache-2.0
// Proves which kernels each CPU level uses, and that kernels of a unit that no level with a name
// has are used where it is and nowhere else. Tables are only compared, so levels that this machine
// does not run are here, too.
#include "engine/cpu/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/cpu/base/context.h"
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/linear/linear_bf16.h"
#include "engine/cpu/linear/linear_kernels.h"
#include "engine/cpu/linear/linear_quant_simd.h"
#include "engine/cpu/linear/linear_scalar.h"
#include "engine/cpu/linear/linear_vnni.h"
#include "engine/cpu/linear/weight.h"
#include "engine/linear_cases.h"

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
      EXPECT_EQ(x.layer_norm == y.layer_norm, lanes);
      EXPECT_EQ(x.low_rank == y.low_rank, lanes);
      EXPECT_EQ(x.rms_norm == y.rms_norm, lanes);
      EXPECT_EQ(x.scan == y.scan, lanes);
      EXPECT_EQ(x.selective_scan == y.selective_scan, lanes);
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

/// A unit as AMX is, with kernels of its own for two types.
constexpr uint32_t kUnit = 1U << 31;
constexpr CpuLevel with_unit(CpuLevel level) { return {level.features | kUnit}; }

constexpr float kMark = 7.5F;
void unit_kernel(const TileJob& job) {
  for (int64_t t = 0; t < job.rows; ++t) {
    std::fill_n(job.acc + t * job.acc_stride, job.n_tiles * 16, kMark);
  }
}

/// A table as it would be if quant_kernels and float_kernels had a row of the unit's.
struct UnitTable {
  FloatKernels floats;
  QuantKernels quantised;
  KernelTable table;

  UnitTable(CpuLevel level, CpuLevel needs)
      : floats(*float_kernels(level)),
        quantised(*quant_kernels(level)),
        table(kernel_table(level)) {
    floats.bf16 = unit_kernel;
    floats.bf16_form = kActBF16;
    quantised.of[quant::find_traits(DType::kQ8_0) - quant::kTraits] = unit_kernel;
    const KernelRow<FloatKernels> float_rows[] = {{needs, &floats},
                                                  {CpuLevel::kScalar, table.linear_float}};
    const KernelRow<QuantKernels> quant_rows[] = {{needs, &quantised},
                                                  {CpuLevel::kScalar, table.linear_quant}};
    table.linear_float = pick_kernels(level, float_rows);
    table.linear_quant = pick_kernels(level, quant_rows);
  }
};

TEST(KernelTable, AUnitChangesNoKernelsButItsOwn) {
  for (const Choice& choice : kChoices) {
    SCOPED_TRACE(cpu_level_name(choice.level));
    const KernelTable x = kernel_table(with_unit(choice.level));
    const KernelTable y = kernel_table(choice.level);
    EXPECT_EQ(x.activations, y.activations);
    EXPECT_EQ(x.attention, y.attention);
    EXPECT_EQ(x.elementwise, y.elementwise);
    EXPECT_EQ(x.linear_float, y.linear_float);
    EXPECT_EQ(x.linear_quant, y.linear_quant);
    EXPECT_EQ(x.layer_norm, y.layer_norm);
    EXPECT_EQ(x.low_rank, y.low_rank);
    EXPECT_EQ(x.rms_norm, y.rms_norm);
    EXPECT_EQ(x.scan, y.scan);
    EXPECT_EQ(x.selective_scan, y.selective_scan);
  }
}

TEST(KernelTable, AUnitsKernelsAndFormsArePickedWhereItIs) {
  for (const Choice& choice : kChoices) {
    for (const bool there : {false, true}) {
      const UnitTable of(there ? with_unit(choice.level) : choice.level,
                         with_unit(CpuLevel::kAvx512));
      SCOPED_TRACE(std::string(cpu_level_name(choice.level)) + (there ? " and the unit" : ""));
      const bool picked = there && cpu_level_runs(CpuLevel::kAvx512, choice.level);
      EXPECT_EQ(find_tile_kernel(of.table, DType::kBF16) == unit_kernel, picked);
      EXPECT_EQ(find_tile_kernel(of.table, DType::kQ8_0) == unit_kernel, picked);
      EXPECT_NE(find_tile_kernel(of.table, DType::kF16), unit_kernel);
      EXPECT_NE(find_tile_kernel(of.table, DType::kQ4_0), unit_kernel);
      EXPECT_EQ(activation_form(of.table, DType::kBF16),
                picked || choice.dots ? kActBF16 : kActF32);
      EXPECT_EQ(activation_form(of.table, DType::kF16), kActF32);
      EXPECT_EQ(activation_form(of.table, DType::kQ8_0), kActQ8);
    }
  }
}

TEST(KernelTable, RowsThatAreNotCompiledArePassedBy) {
  const ScanKernels* const one = kernel_table(CpuLevel::kScalar).scan;
  const KernelRow<ScanKernels> rows[] = {{CpuLevel::kScalar, nullptr}, {CpuLevel::kAvx2, one}};
  EXPECT_EQ(pick_kernels(CpuLevel::kAvx512, rows), one);
  EXPECT_EQ(pick_kernels(CpuLevel::kScalar, rows), nullptr);
}

// The unit's kernels are plain C++ here, so it may stand beside whatever the machine has.
TEST(KernelTable, ProductsUseTheUnitsKernelsAndForms) {
  constexpr int64_t kCols = 64;
  constexpr int64_t kOutputs = 20;
  constexpr int64_t kRows = 3;
  const auto pool = std::move(ThreadPool::create(2)).value();
  CpuStream stream(system_allocator());
  const std::vector<float> x = engine::random_floats(1, kRows * kCols);
  for (const DType type : {DType::kBF16, DType::kQ8_0, DType::kF16}) {
    const TestMatrix matrix(type, kOutputs, kCols, 2);
    const WeightSource source = matrix.source();
    for (const bool there : {false, true}) {
      SCOPED_TRACE(std::string(dtype_name(type)) + (there ? " and the unit" : ""));
      const CpuLevel level = there ? with_unit(detect_cpu_level()) : detect_cpu_level();
      const UnitTable of(level, with_unit(CpuLevel::kScalar));
      CpuContext context{of.table, *pool, stream};
      const auto weight = CpuWeight::prepare(system_allocator(), *pool, WeightRole::kLinear,
                                             {&source, 1}, of.table, true, nullptr, false);
      ASSERT_TRUE(weight.ok());
      const uint32_t forms = weight.value()->activation_forms();
      EXPECT_EQ(forms, activation_form(of.table, type));
      const size_t bytes = packed_row_bytes(forms, kCols) * kRows;
      const Buffer packed = std::move(Buffer::allocate(system_allocator(), bytes)).value();
      PackArgs pack;
      pack.x = {engine_ptr(x.data()), kRows, kCols, kCols};
      pack.y = {engine_ptr(packed.data()), forms, kRows, kCols};
      ASSERT_TRUE(run(context, pack).ok());
      std::vector<float> y(kRows * kOutputs);
      LinearArgs linear;
      linear.weight = weight.value().get();
      linear.x = pack.y;
      linear.y = {engine_ptr(y.data()), kRows, kOutputs, kOutputs};
      ASSERT_TRUE(run(context, linear).ok());
      const bool marked = there && type != DType::kF16;
      EXPECT_EQ(std::count(y.begin(), y.end(), kMark), marked ? kRows * kOutputs : 0);
    }
  }
}

}  // namespace
}  // namespace gen::engine::cpu
