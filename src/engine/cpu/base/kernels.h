// SPDX-License-Identifier: Apache-2.0
// The kernels of one CPU level: one pointer per operation to that operation's own table of
// functions. An operation adds here one forward declaration, one member, and in ../kernel_table.cpp
// one line. Each operation's function `const XKernels* x_kernels(CpuLevel)` answers for every
// level: its scalar table where it has nothing faster, so an engine always finds a full table.
// Every level gives the same bits, but for BF16 weights at avx512_bf16; tests put tables of several
// levels side by side.
#pragma once

#include <cstddef>

#include "base/cpu.h"

namespace gen::engine::cpu {

struct ActivationKernels;   // activations.h
struct AttentionKernels;    // attention.h
struct ElementwiseKernels;  // elementwise.h
struct FloatKernels;        // linear_kernels.h
struct LayerNormKernels;    // layer_norm.h
struct LowRankKernels;      // low_rank.h
struct QuantKernels;        // linear_kernels.h
struct RmsNormKernels;      // rms_norm.h
struct RouteKernels;        // route.h
struct ScanKernels;         // scan.h

struct KernelTable {
  const ActivationKernels* activations = nullptr;
  const AttentionKernels* attention = nullptr;
  const ElementwiseKernels* elementwise = nullptr;
  const FloatKernels* linear_float = nullptr;
  const QuantKernels* linear_quant = nullptr;
  const LayerNormKernels* layer_norm = nullptr;
  const LowRankKernels* low_rank = nullptr;
  const RmsNormKernels* rms_norm = nullptr;
  const RouteKernels* route = nullptr;
  const ScanKernels* scan = nullptr;
};

/// Kernels of a unit of the processor, and the features that they need.
template <typename Kernels>
struct KernelRow {
  CpuLevel needs;
  const Kernels* kernels;  // null where they are not compiled
};
/// The first that run at `level`, the best being the first; null if none do.
template <typename Kernels, size_t kRows>
const Kernels* pick_kernels(CpuLevel level, const KernelRow<Kernels> (&rows)[kRows]) noexcept {
  for (const KernelRow<Kernels>& row : rows) {
    if (row.kernels != nullptr && cpu_level_runs(row.needs, level)) return row.kernels;
  }
  return nullptr;
}

/// How many functions a table by activation or by format has, to be checked when it is compiled.
template <typename Function, size_t kElements>
constexpr size_t filled(Function* const (&table)[kElements]) {
  size_t n = 0;
  for (Function* const function : table) n += function != nullptr ? 1 : 0;
  return n;
}

}  // namespace gen::engine::cpu
