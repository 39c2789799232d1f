// SPDX-License-Identifier: Apache-2.0
// The kernels of one CPU level: one pointer per operation to that operation's own table of
// functions. A new operation adds a forward declaration and a member here, and a line in
// ../kernel_table.cpp. Each operation's function `const XKernels* x_kernels(CpuLevel)` returns a
// table for every level, the scalar one if it has nothing faster. Every level gives the same bits,
// except for BF16 weights at avx512_bf16. Tests compare the tables of several levels.
#pragma once

#include <cstddef>

#include "base/cpu.h"

namespace gen::engine::cpu {

struct ActivationKernels;     // activations.h
struct AttentionKernels;      // attention.h
struct CausalConvKernels;     // causal_conv.h
struct DeltaNetKernels;       // delta_net.h
struct ElementwiseKernels;    // elementwise.h
struct FloatKernels;          // linear_kernels.h
struct LayerNormKernels;      // layer_norm.h
struct LowRankKernels;        // low_rank.h
struct QuantKernels;          // linear_kernels.h
struct RmsNormKernels;        // rms_norm.h
struct RouteKernels;          // route.h
struct ScanKernels;           // scan.h
struct SelectiveScanKernels;  // selective_scan.h

struct KernelTable {
  const ActivationKernels* activations = nullptr;
  const AttentionKernels* attention = nullptr;
  const CausalConvKernels* causal_conv = nullptr;
  const DeltaNetKernels* delta_net = nullptr;
  const ElementwiseKernels* elementwise = nullptr;
  const FloatKernels* linear_float = nullptr;
  const QuantKernels* linear_quant = nullptr;
  const LayerNormKernels* layer_norm = nullptr;
  const LowRankKernels* low_rank = nullptr;
  const RmsNormKernels* rms_norm = nullptr;
  const RouteKernels* route = nullptr;
  const ScanKernels* scan = nullptr;
  const SelectiveScanKernels* selective_scan = nullptr;
};

/// The kernels of one instruction set, and the level that they need.
template <typename Kernels>
struct KernelRow {
  CpuLevel needs;
  const Kernels* kernels;  // null if they are not compiled
};
/// The first row that runs at `level`; rows are sorted best first. Null if there is none.
template <typename Kernels, size_t kRows>
const Kernels* pick_kernels(CpuLevel level, const KernelRow<Kernels> (&rows)[kRows]) noexcept {
  for (const KernelRow<Kernels>& row : rows) {
    if (row.kernels != nullptr && cpu_level_runs(row.needs, level)) return row.kernels;
  }
  return nullptr;
}

/// The number of functions in a table by activation or by format, for checks at compile time.
template <typename Function, size_t kElements>
constexpr size_t filled(Function* const (&table)[kElements]) {
  size_t n = 0;
  for (Function* const function : table) n += function != nullptr ? 1 : 0;
  return n;
}

}  // namespace gen::engine::cpu
