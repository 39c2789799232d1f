// SPDX-License-Identifier: Apache-2.0
// The kernels of matrix products, per CPU level: one per weight type over a run of tiles and rows,
// and the epilogue that turns sums into outputs. Each type has one order of operations, defined by
// linear_scalar.cpp, for any number of rows and on every level. The exception is BF16 at
// avx512_bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/cpu.h"
#include "engine/activation.h"
#include "engine/cpu/base/kernels.h"
#include "engine/ops.h"
#include "quant/traits.h"
#include "tensor/dtype.h"

namespace gen::engine::cpu {

/// acc[t][16 * i + r] = sum over columns of tile i's row r times row t of x.
struct TileJob {
  const std::byte* tiles = nullptr;  // the first tile
  size_t tile_bytes = 0;             // from one tile to the next
  int64_t n_tiles = 0;
  int64_t cols = 0;
  const std::byte* x = nullptr;  // the first row, in the type's activation form
  size_t x_stride = 0;           // bytes from one row to the next
  int64_t rows = 0;
  float* acc = nullptr;  // [rows][acc_stride], 64-byte aligned, acc_stride a multiple of 16
  int64_t acc_stride = 0;
  std::byte* scratch = nullptr;  // kTileScratchBytes, 64-byte aligned, of this thread
};
using TileKernel = void (*)(const TileJob& job);

/// Scratch of a kernel for decoded weights.
inline constexpr size_t kTileScratchBytes = 48 * 1024;

/// Float weights, and the epilogue of all products (linear_float-inl.h).
struct FloatKernels {
  TileKernel f32;
  TileKernel f16;
  TileKernel bf16;
  /// y[i] = act(sum[i] (+ bias[i])) (+ residual[i]), by Act; null for activations that are gated
  /// only. bias and residual may be null, residual may be y. The sums are readable up to the next
  /// multiple of 16.
  void (*finish[kActs])(const float* sum, const float* bias, const float* residual, float* y,
                        int64_t n, const Activation& activation);
  /// y[i] = act(gate[i] (+ gate_bias[i])) * (up[i] (+ up_bias[i])) (+ residual[i]), by Act.
  void (*finish_gated[kActs])(const float* gate, const float* up, const float* gate_bias,
                              const float* up_bias, const float* residual, float* y, int64_t n,
                              const Activation& activation);
  uint32_t bf16_form = kActF32;  // form of x for `bf16`
};
/// Never null.
const FloatKernels* float_kernels(CpuLevel level) noexcept;

/// Quantised weights: one kernel per row of quant::kTraits.
struct QuantKernels {
  TileKernel of[std::size(quant::kTraits)];
};
inline constexpr auto kQuantIndices = std::make_index_sequence<std::size(quant::kTraits)>();
/// Never null.
const QuantKernels* quant_kernels(CpuLevel level) noexcept;

/// The kernel for a weight type, null if there is none.
TileKernel find_tile_kernel(const KernelTable& kernels, DType type) noexcept;

/// The activation form that this kernel reads, or 0.
uint32_t activation_form(const KernelTable& kernels, DType type) noexcept;

}  // namespace gen::engine::cpu
