// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of CPU operations: the levels of this machine, a context, random floats and
// comparison of bits.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "base/allocator.h"
#include "base/cpu.h"
#include "base/thread_pool.h"
#include "engine/cpu/base/context.h"
#include "engine/cpu/kernel_table.h"

namespace gen::engine::cpu {

/// Scalar first, then every other level this machine runs.
inline std::vector<CpuLevel> levels_here() {
  std::vector<CpuLevel> levels;
  for (const NamedCpuLevel& row : kCpuLevels) {
    if (cpu_level_runs(row.level, detect_cpu_level())) levels.push_back(row.level);
  }
  return levels;
}

/// A pool, a stream and the kernels of one level.
class CpuBench {
 public:
  explicit CpuBench(CpuLevel level = CpuLevel::kScalar, int32_t threads = 1)
      : kernels_(kernel_table(level)),
        pool_(std::move(ThreadPool::create(threads)).value()),
        stream_(system_allocator()),
        context_{kernels_, *pool_, stream_} {}
  CpuContext& operator*() { return context_; }

 private:
  KernelTable kernels_;
  std::shared_ptr<ThreadPool> pool_;
  CpuStream stream_;
  CpuContext context_;
};

/// Uniform in [-scale, scale), the same on every machine.
inline std::vector<float> random_floats(size_t n, uint32_t seed, float scale = 1.0F) {
  std::mt19937 bits(seed);
  std::vector<float> values(n);
  for (float& value : values) {
    value = (static_cast<float>(bits() >> 8) * 0x1p-23F - 1.0F) * scale;
  }
  return values;
}

/// Equal bits, or both NaN.
inline bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (a != a && b != b);
}
inline ::testing::AssertionResult same_bits(const std::vector<float>& a,
                                            const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " vs " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) {
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " vs " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace gen::engine::cpu
