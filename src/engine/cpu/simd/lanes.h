// SPDX-License-Identifier: Apache-2.0
// Compiles a kernel on sixteen lanes (lanes-inl.h) once per CPU level. Unlike kernels with a
// separate scalar file, these are compiled for plain C++ as well, so the scalar level and the
// others share one source. A kernel's .cpp has
//
//   #define HWY_TARGET_INCLUDE "engine/cpu/<folder>/<op>-inl.h"
//   #include "engine/cpu/simd/lanes.h"
//   #include "hwy/foreach_target.h"  // IWYU pragma: keep
//   #include "engine/cpu/<folder>/<op>-inl.h"
//
// and gets the copy of a level from GEN_LANES_PICK. Include this before any Highway header.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "engine/cpu/simd/simd.h"

#define HWY_COMPILE_ALL_ATTAINABLE
#include "hwy/detect_targets.h"

// Highway's target for plain C++ depends on the compiler; both are the scalar level here.
#if HWY_TARGETS & HWY_EMU128
#define GEN_LANES_SCALAR N_EMU128
#else
#define GEN_LANES_SCALAR N_SCALAR
#endif

/// Address of `table` in the best namespace that runs at `level`; there is always one.
#define GEN_LANES_PICK(level, table) GEN_SIMD_PICK_OR(level, table, &GEN_LANES_SCALAR::table)

/// Unrolls the next loop completely, so that arrays of vectors stay in registers.
#if defined(__clang__)
#define GEN_UNROLL _Pragma("unroll")
#else
#define GEN_UNROLL _Pragma("GCC unroll 16")
#endif

namespace gen::engine::cpu {
/// Floats that a kernel processes at once, whatever the register width.
constexpr int64_t kLanes = 16;
}  // namespace gen::engine::cpu
