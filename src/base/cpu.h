// SPDX-License-Identifier: Apache-2.0
// What the processor and the operating system offer the kernels, and which level to use. Read next:
// the engine's kernel tables, one per level.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace gen {

/// What kernels may need of a processor, one bit each. A new unit is one more, a line in cpu.cpp's
/// detect_x86 and a row of kCpuLevels.
enum CpuFeature : uint32_t {
  kCpuAvx2 = 1U << 0,    ///< AVX2, FMA, F16C, BMI1, BMI2
  kCpuAvx512 = 1U << 1,  ///< AVX-512 F, BW, DQ, VL, CD
  kCpuVnni = 1U << 2,    ///< AVX512-VNNI
  kCpuBf16 = 1U << 3,    ///< AVX512-BF16
  kCpuNeon = 1U << 4,
};

/// A set of features: those that a machine has, that kernels may use, or that a kernel needs. Sets
/// are not ordered; cpu_level_runs() compares them. The constants are the named sets, but a machine
/// may have any combination of units.
struct CpuLevel {
  uint32_t features = 0;  // bits of CpuFeature

  static const CpuLevel kScalar, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kNeon;
  friend constexpr bool operator==(const CpuLevel&, const CpuLevel&) noexcept = default;
};
inline constexpr CpuLevel CpuLevel::kScalar = {};
inline constexpr CpuLevel CpuLevel::kAvx2 = {kCpuAvx2};
inline constexpr CpuLevel CpuLevel::kAvx512 = {kAvx2.features | kCpuAvx512};
inline constexpr CpuLevel CpuLevel::kAvx512Vnni = {kAvx512.features | kCpuVnni};
inline constexpr CpuLevel CpuLevel::kAvx512Bf16 = {kAvx512Vnni.features | kCpuBf16};
inline constexpr CpuLevel CpuLevel::kNeon = {kCpuNeon};

struct NamedCpuLevel {
  const char* name;  // as in GEN_CPU
  CpuLevel level;
};
/// Better ones come later.
inline constexpr NamedCpuLevel kCpuLevels[] = {
    {"scalar", CpuLevel::kScalar},          {"avx2", CpuLevel::kAvx2},
    {"avx512", CpuLevel::kAvx512},          {"avx512_vnni", CpuLevel::kAvx512Vnni},
    {"avx512_bf16", CpuLevel::kAvx512Bf16}, {"neon", CpuLevel::kNeon},
};

/// All units that the processor has and whose registers the operating system saves; at most kAvx2
/// if the library is built without AVX-512 (CMake's GEN_AVX512=OFF).
CpuLevel detect_cpu_level() noexcept;

/// True if kernels that need `level` run where `has` is present, that is, if `level` is a subset of
/// it.
constexpr bool cpu_level_runs(CpuLevel level, CpuLevel has) noexcept {
  return (level.features & ~has.features) == 0;
}

/// The level to use on this machine unless told otherwise: the detected one, but without BF16 on
/// Intel's processors. There BF16 weights would lose both precision and speed, since float32 has
/// twice the products per second (docs/decisions/0006); others are taken to gain.
CpuLevel default_cpu_level() noexcept;

/// The default level, or the one that the environment variable GEN_CPU names. Errors:
/// kInvalidArgument for an unknown name or a level that this machine lacks.
Result<CpuLevel> chosen_cpu_level();

/// The name in kCpuLevels; for a set without a name, that of the best level in it.
const char* cpu_level_name(CpuLevel level) noexcept;

/// Bytes of memory of the machine; 0 if unknown.
uint64_t machine_memory() noexcept;

}  // namespace gen
