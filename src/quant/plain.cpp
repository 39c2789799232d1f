// SPDX-License-Identifier: Apache-2.0
// The plain formats. Elements are copied byte-wise, because files may align them in any way.
#include "quant/plain.h"

#include <algorithm>
#include <cstring>

#include "tensor/half.h"

namespace gen::quant {
namespace {

template <typename T>
T load(const std::byte* from, int64_t i) {
  T value;
  std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* to, int64_t i, T value) {
  std::memcpy(to + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
}

constexpr float kLargestF16 = 65504.0F;
constexpr float kLargestBf16 = 0x1.FEp127F;

}  // namespace

void decode_f32(const std::byte* blocks, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = load<float>(blocks, i);
}

void encode_f32(const float* x, std::byte* blocks, int64_t n) {
  for (int64_t i = 0; i < n; ++i) store(blocks, i, x[i]);
}

void decode_f16(const std::byte* blocks, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = f16_to_f32(load<uint16_t>(blocks, i));
}

void encode_f16(const float* x, std::byte* blocks, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    store(blocks, i, f32_to_f16(std::clamp(x[i], -kLargestF16, kLargestF16)));
  }
}

void decode_bf16(const std::byte* blocks, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = bf16_to_f32(load<uint16_t>(blocks, i));
}

void encode_bf16(const float* x, std::byte* blocks, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    store(blocks, i, f32_to_bf16(std::clamp(x[i], -kLargestBf16, kLargestBf16)));
  }
}

}  // namespace gen::quant
