// SPDX-License-Identifier: Apache-2.0
// Selects the targets that Highway compiles; include it before any Highway header. A SIMD body is
// written once, in a file <op>-inl.h or in the .cpp, which includes itself once per target. It ends
// in one constant table per target in namespace HWY_NAMESPACE, and a function after HWY_ONCE maps a
// CpuLevel to a table:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "engine/cpu/<folder>/<op>_simd.cpp"
//   #include "engine/cpu/simd/simd.h"
//   #include "hwy/foreach_target.h"
//   #include "hwy/highway.h"
//   #if GEN_SIMD_TARGET
//   HWY_BEFORE_NAMESPACE();
//   namespace gen::engine::cpu { namespace HWY_NAMESPACE { … constexpr XKernels kTable = {…}; } }
//   HWY_AFTER_NAMESPACE();
//   #endif
//   #if HWY_ONCE
//   … GEN_SIMD_PICK(level, kTable) …
//   #endif
//
// Only targets with a fused MulAdd are used, so that every level gives the same bits. The x86
// baseline has none; the scalar level is separate plain C++.
#pragma once

#define HWY_DISABLE_PCLMUL_AES 1
// A build without copies for AVX-512 (GEN_WITHOUT_AVX512) detects no level above AVX2.
#if defined(GEN_WITHOUT_AVX512)
#define GEN_DISABLED_AVX512 HWY_AVX3
#define GEN_NAMESPACE_AVX512 N_AVX2
#else
#define GEN_DISABLED_AVX512 0
#define GEN_NAMESPACE_AVX512 N_AVX3
#endif
#define HWY_DISABLED_TARGETS                                                                     \
  (HWY_SSSE3 | HWY_SSE4 | GEN_DISABLED_AVX512 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128)

/// True while the file is compiled for a target that has a table.
#define GEN_SIMD_TARGET (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON)

// Include targets below the compiler's baseline, so that every build has every level.
#define HWY_COMPILE_ALL_ATTAINABLE

/// Address of `table` in the best namespace that runs at `level`, or `otherwise` if none does. Each
/// line has a target and the level that it needs.
#if defined(__x86_64__)
#define GEN_SIMD_PICK_OR(level, table, otherwise)                          \
  (cpu_level_runs(CpuLevel::kAvx512, level) ? &GEN_NAMESPACE_AVX512::table \
   : cpu_level_runs(CpuLevel::kAvx2, level) ? &N_AVX2::table               \
                                            : otherwise)
#elif defined(__aarch64__)
#define GEN_SIMD_PICK_OR(level, table, otherwise) \
  (cpu_level_runs(CpuLevel::kNeon, level) ? &N_NEON::table : otherwise)
#else
#define GEN_SIMD_PICK_OR(level, table, otherwise) (otherwise)
#endif
#define GEN_SIMD_PICK(level, table) GEN_SIMD_PICK_OR(level, table, nullptr)
