// SPDX-License-Identifier: Apache-2.0
// F32, F16 and BF16: one element is one block of 32, 16 and 16 bits, little-endian. Encoding rounds
// to nearest even; binary16 saturates at its largest finite value, 65504.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::quant {

void decode_f32(const std::byte* blocks, float* out, int64_t n);
void encode_f32(const float* x, std::byte* blocks, int64_t n);
void decode_f16(const std::byte* blocks, float* out, int64_t n);
void encode_f16(const float* x, std::byte* blocks, int64_t n);
void decode_bf16(const std::byte* blocks, float* out, int64_t n);
void encode_bf16(const float* x, std::byte* blocks, int64_t n);

}  // namespace gen::quant
