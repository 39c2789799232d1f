// SPDX-License-Identifier: Apache-2.0
// What the processor and the operating system offer the kernels, and which level to use. Read next:
// the engine's kernel tables, one per level.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace gen {

/// Kernel levels in ascending capability within one architecture; kNeon stands apart, on ARM only.
enum class CpuLevel : int32_t {
  kScalar,
  kAvx2,        ///< AVX2, FMA, F16C, BMI1, BMI2
  kAvx512,      ///< AVX-512 F, BW, DQ, VL, CD
  kAvx512Vnni,  ///< and VNNI
  kAvx512Bf16,  ///< and BF16
  kNeon,
};

/// The best level that the processor has and the operating system saves the registers of; at most
/// kAvx2 where the library is built without AVX-512 (CMake's GEN_AVX512=OFF).
CpuLevel detect_cpu_level() noexcept;

/// True if kernels of `level` run on a machine whose detected level is `detected`.
bool cpu_level_runs(CpuLevel level, CpuLevel detected) noexcept;

/// The level to use on this machine unless told otherwise: the detected one, but kAvx512Vnni for
/// kAvx512Bf16 on Intel's processors. There BF16 weights would lose both precision and speed, since
/// float32 has twice the products per second (docs/decisions/0006); others are taken to gain.
CpuLevel default_cpu_level() noexcept;

/// The default level, or the one that the environment variable GEN_CPU names. Errors:
/// kInvalidArgument for an unknown name or a level that this machine lacks.
Result<CpuLevel> chosen_cpu_level();

/// The name as in GEN_CPU: scalar, avx2, avx512, avx512_vnni, avx512_bf16, neon.
const char* cpu_level_name(CpuLevel level) noexcept;

/// Bytes of memory that the machine has; 0 if it does not say.
uint64_t machine_memory() noexcept;

}  // namespace gen
