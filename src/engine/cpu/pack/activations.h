// SPDX-License-Identifier: Apache-2.0
// Activations packed for products: each row in every requested form, in the order of ActForm, each
// form aligned to 64 bytes. kActBF16 is rounded to nearest even, NaN becomes quiet, and an odd last
// element is followed by a zero. Operations that write packed rows (pack, norms, attention) call
// pack_row. The bits are the same on every CPU level.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu.h"
#include "engine/cpu/base/kernels.h"
#include "engine/cpu/base/rows.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

/// 32 activations: x = q * scale. 40 bytes.
/// scale = amax / 127 rounded to binary16 (held as float32, at most 65504), q = x * 127 / amax
/// rounded to nearest even within [-127, 127], or x / scale if the scale is not a normal binary16.
/// A block with a NaN or infinity has q = 0 and scale = NaN, so that every product with it is NaN.
struct ActQ8Block {
  int8_t q[32];
  float scale;
  int32_t minus_128_sum;  // -128 * sum of q: undoes the offset of weights stored unsigned
};
static_assert(sizeof(ActQ8Block) == 40);

/// 256 activations: x = q * scale, scale = amax / 127 in float32, q as above. 384 bytes.
struct ActQ8KBlock {
  int8_t q[256];
  int32_t minus_32_sum[16];  // -32 * sum of 16 consecutive q: undoes an offset of the weights
  int16_t sum16[16];         // sums of 16 and of 32 consecutive q, for minima
  int16_t sum32[8];
  float scale;
  int32_t unused[3];
};
static_assert(sizeof(ActQ8KBlock) == 384);

/// Quantises whole blocks: n is a multiple of 32 or 256. round_bf16 takes any n.
struct ActivationKernels {
  void (*quantize_q8)(const float* x, int64_t n, ActQ8Block* out);
  void (*quantize_q8k)(const float* x, int64_t n, ActQ8KBlock* out);
  void (*round_bf16)(const float* x, int64_t n, uint16_t* out);
};
const ActivationKernels* activation_kernels(CpuLevel level) noexcept;

/// Size of a row of `cols` elements in all `forms`, a multiple of 64. A form whose block does not
/// divide `cols` cannot be used; only its whole blocks are counted.
size_t packed_row_bytes(uint32_t forms, int64_t cols) noexcept;
/// Where `form` starts in such a row.
size_t packed_form_offset(uint32_t forms, uint32_t form, int64_t cols) noexcept;

/// Packs one row of y.cols floats into row `row` of `y`. x is not changed and may be unaligned.
void pack_row(const KernelTable& kernels, const float* x, const PackedView& y,
              int64_t row) noexcept;

}  // namespace gen::engine::cpu
