// SPDX-License-Identifier: Apache-2.0
// How a kernel written once on sixteen lanes (lanes-inl.h) becomes one copy per CPU level. Unlike
// bodies that have a separate scalar file, these are also compiled for plain C++, so the scalar
// level and the fast ones are the same text. A kernel's .cpp says
//
//   #define HWY_TARGET_INCLUDE "engine/cpu/<folder>/<op>-inl.h"
//   #include "engine/cpu/simd/lanes.h"
//   #include "hwy/foreach_target.h"  // IWYU pragma: keep
//   #include "engine/cpu/<folder>/<op>-inl.h"
//
// and asks GEN_LANES_PICK for the copy of a level. Include this before any Highway header.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "engine/cpu/simd/simd.h"

#define HWY_COMPILE_ALL_ATTAINABLE
#include "hwy/detect_targets.h"

// Highway's target for plain C++ depends on the compiler; both mean the scalar level here.
#if HWY_TARGETS & HWY_EMU128
#define GEN_LANES_SCALAR N_EMU128
#else
#define GEN_LANES_SCALAR N_SCALAR
#endif

/// Address of `table` in the best namespace that runs at `level`; there is always one.
#define GEN_LANES_PICK(level, table) GEN_SIMD_PICK_OR(level, table, &GEN_LANES_SCALAR::table)

/// Complete unrolling of the loop that follows, so that arrays of registers stay in registers.
#if defined(__clang__)
#define GEN_UNROLL _Pragma("unroll")
#else
#define GEN_UNROLL _Pragma("GCC unroll 16")
#endif

namespace gen::engine::cpu {
/// Floats that a kernel works on at once, whatever a machine's registers hold.
constexpr int64_t kLanes = 16;
}  // namespace gen::engine::cpu
