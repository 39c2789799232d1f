// SPDX-License-Identifier: Apache-2.0
// Layout of packed rows, and quantisation in plain C++, which defines the bits that
// activations_simd.cpp repeats. See activations.h.
#include "engine/cpu/pack/activations.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "engine/cpu/pack/activations_simd.h"
#include "tensor/half.h"

namespace gen::engine::cpu {
namespace {

uint32_t largest_magnitude_bits(const float* x, int n) noexcept {
  uint32_t largest = 0;
  for (int i = 0; i < n; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFu);
  }
  return largest;
}

// Returns the sum of 16 results.
int32_t quantize_16(const float* x, float inverse, int8_t* q) noexcept {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) {
    const float limited = std::min(std::max(x[i] * inverse, -127.0F), 127.0F);
    // Adding 1.5 * 2^23 rounds to the nearest integer, ties to even.
    const int32_t value = static_cast<int32_t>((limited + 12582912.0F) - 12582912.0F);
    q[i] = static_cast<int8_t>(value);
    sum += value;
  }
  return sum;
}

void quantize_q8(const float* x, int64_t n, ActQ8Block* out) {
  for (int64_t i = 0; i < n; i += 32, x += 32, ++out) {
    const QuantScale scale = q8_scale(largest_magnitude_bits(x, 32));
    out->scale = scale.scale;
    if (scale.inverse == 0.0F) {
      std::memset(out->q, 0, sizeof(out->q));
      out->minus_128_sum = 0;
      continue;
    }
    const int32_t sum =
        quantize_16(x, scale.inverse, out->q) + quantize_16(x + 16, scale.inverse, out->q + 16);
    out->minus_128_sum = -128 * sum;
  }
}

void quantize_q8k(const float* x, int64_t n, ActQ8KBlock* out) {
  for (int64_t i = 0; i < n; i += 256, x += 256, ++out) {
    const QuantScale scale = q8k_scale(largest_magnitude_bits(x, 256));
    *out = {};
    out->scale = scale.scale;
    if (scale.inverse == 0.0F) continue;
    for (int s = 0; s < 16; ++s) {
      const int32_t sum = quantize_16(x + s * 16, scale.inverse, out->q + s * 16);
      out->minus_32_sum[s] = -32 * sum;
      out->sum16[s] = static_cast<int16_t>(sum);
      out->sum32[s / 2] = static_cast<int16_t>(out->sum32[s / 2] + sum);
    }
  }
}

void round_bf16(const float* x, int64_t n, uint16_t* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = f32_to_bf16(x[i]);
}

constexpr ActivationKernels kScalarKernels = {quantize_q8, quantize_q8k, round_bf16};

size_t form_bytes(uint32_t form, int64_t cols) noexcept {
  const auto n = static_cast<size_t>(cols);
  switch (form) {
    case kActF32:
      return (n * sizeof(float) + 63) & ~size_t{63};
    case kActQ8:
      return (n / 32 * sizeof(ActQ8Block) + 63) & ~size_t{63};
    case kActQ8K:
      return (n / 256 * sizeof(ActQ8KBlock) + 63) & ~size_t{63};
    case kActBF16:
      return ((n + 1) / 2 * 2 * sizeof(uint16_t) + 63) & ~size_t{63};
    default:
      return 0;
  }
}

}  // namespace

const ActivationKernels* activation_kernels(CpuLevel level) noexcept {
  const ActivationKernels* fast = activation_kernels_simd(level);
  return fast != nullptr ? fast : &kScalarKernels;
}

size_t packed_row_bytes(uint32_t forms, int64_t cols) noexcept {
  const size_t bytes = packed_form_offset(forms, kActBF16 << 1, cols);
  // Kernels read the same columns of several rows. With such a stride these would map to the same
  // set of the L1 cache.
  return bytes % 2048 == 0 ? bytes + 512 : bytes;
}

size_t packed_form_offset(uint32_t forms, uint32_t form, int64_t cols) noexcept {
  size_t offset = 0;
  for (uint32_t one = kActF32; one < form; one <<= 1) {
    if ((forms & one) != 0) offset += form_bytes(one, cols);
  }
  return offset;
}

void pack_row(const KernelTable& kernels, const float* x, const PackedView& y,
              int64_t row) noexcept {
  std::byte* out = y.data + static_cast<size_t>(row) * packed_row_bytes(y.forms, y.cols);
  if ((y.forms & kActF32) != 0) {
    std::memcpy(out, x, static_cast<size_t>(y.cols) * sizeof(float));
  }
  if ((y.forms & kActQ8) != 0) {
    auto* blocks = reinterpret_cast<ActQ8Block*>(out + packed_form_offset(y.forms, kActQ8, y.cols));
    kernels.activations->quantize_q8(x, y.cols / 32 * 32, blocks);
  }
  if ((y.forms & kActQ8K) != 0) {
    auto* blocks =
        reinterpret_cast<ActQ8KBlock*>(out + packed_form_offset(y.forms, kActQ8K, y.cols));
    kernels.activations->quantize_q8k(x, y.cols / 256 * 256, blocks);
  }
  if ((y.forms & kActBF16) != 0) {
    auto* values = reinterpret_cast<uint16_t*>(out + packed_form_offset(y.forms, kActBF16, y.cols));
    kernels.activations->round_bf16(x, y.cols, values);
    if (y.cols % 2 != 0) values[y.cols] = 0;
  }
}

}  // namespace gen::engine::cpu
