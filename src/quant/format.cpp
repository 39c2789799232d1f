// SPDX-License-Identifier: Apache-2.0
// The table of weight formats. See format.h.
#include "quant/format.h"

#include "quant/plain.h"
#include "quant/q4_0.h"
#include "quant/q4_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"

namespace gen::quant {
namespace {

constexpr Format kFormats[] = {
    {DType::kF32, decode_f32, encode_f32},    {DType::kF16, decode_f16, encode_f16},
    {DType::kBF16, decode_bf16, encode_bf16}, {DType::kQ8_0, decode_q8_0, encode_q8_0},
    {DType::kQ4_0, decode_q4_0, encode_q4_0}, {DType::kQ4_K, decode_q4_k, encode_q4_k},
    {DType::kQ6_K, decode_q6_k, encode_q6_k},
};

}  // namespace

const Format* find_format(DType type) noexcept {
  for (const Format& format : kFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

}  // namespace gen::quant
