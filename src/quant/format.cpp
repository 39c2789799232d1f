// SPDX-License-Identifier: Apache-2.0
// The table of weight formats. See format.h.
#include "quant/format.h"

#include "quant/decode.h"
#include "quant/iq1.h"
#include "quant/iq2.h"
#include "quant/iq3.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/mxfp4.h"
#include "quant/nvfp4.h"
#include "quant/plain.h"
#include "quant/q1_0.h"
#include "quant/q2_0.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"
#include "quant/ternary.h"

namespace gen::quant {
namespace {

// Importance is that of one weight against another, which plain types round apart.
template <void (*kEncode)(const float*, std::byte*, int64_t)>
void encode_plain(const float* x, const float* /*importance*/, std::byte* blocks, int64_t n) {
  kEncode(x, blocks, n);
}

template <DType kType, typename Block, void (*kUnpack)(const std::byte*, BlockParts&)>
constexpr Format quantised(void (*encode)(const float*, const float*, std::byte*, int64_t)) {
  return {kType, decode_blocks<kType, sizeof(Block), kUnpack>, encode, kUnpack};
}

constexpr Format kFormats[] = {
    {DType::kF32, decode_f32, encode_plain<encode_f32>, nullptr},
    {DType::kF16, decode_f16, encode_plain<encode_f16>, nullptr},
    {DType::kBF16, decode_bf16, encode_plain<encode_bf16>, nullptr},
    quantised<DType::kQ8_0, Q8_0Block, unpack_q8_0>(encode_q8_0),
    quantised<DType::kQ4_0, Q4_0Block, unpack_q4_0>(encode_q4_0),
    quantised<DType::kQ4_1, Q4_1Block, unpack_q4_1>(encode_q4_1),
    quantised<DType::kQ5_0, Q5_0Block, unpack_q5_0>(encode_q5_0),
    quantised<DType::kQ5_1, Q5_1Block, unpack_q5_1>(encode_q5_1),
    quantised<DType::kIQ4_NL, Iq4NlBlock, unpack_iq4_nl>(encode_iq4_nl),
    quantised<DType::kMXFP4, Mxfp4Block, unpack_mxfp4>(encode_mxfp4),
    quantised<DType::kQ2_K, Q2_KBlock, unpack_q2_k>(encode_q2_k),
    quantised<DType::kQ3_K, Q3_KBlock, unpack_q3_k>(encode_q3_k),
    quantised<DType::kQ4_K, Q4_KBlock, unpack_q4_k>(encode_q4_k),
    quantised<DType::kQ5_K, Q5_KBlock, unpack_q5_k>(encode_q5_k),
    quantised<DType::kQ6_K, Q6_KBlock, unpack_q6_k>(encode_q6_k),
    quantised<DType::kIQ4_XS, Iq4XsBlock, unpack_iq4_xs>(encode_iq4_xs),
    quantised<DType::kIQ2_XXS, Iq2XxsBlock, unpack_iq2_xxs>(encode_iq2_xxs),
    quantised<DType::kIQ2_XS, Iq2XsBlock, unpack_iq2_xs>(encode_iq2_xs),
    quantised<DType::kIQ2_S, Iq2SBlock, unpack_iq2_s>(encode_iq2_s),
    quantised<DType::kIQ3_XXS, Iq3XxsBlock, unpack_iq3_xxs>(encode_iq3_xxs),
    quantised<DType::kIQ3_S, Iq3SBlock, unpack_iq3_s>(encode_iq3_s),
    quantised<DType::kIQ1_S, Iq1SBlock, unpack_iq1_s>(encode_iq1_s),
    quantised<DType::kIQ1_M, Iq1MBlock, unpack_iq1_m>(encode_iq1_m),
    quantised<DType::kTQ1_0, Tq1Block, unpack_tq1_0>(encode_tq1_0),
    quantised<DType::kTQ2_0, Tq2Block, unpack_tq2_0>(encode_tq2_0),
    quantised<DType::kQ1_0, Q1_0Block, unpack_q1_0>(encode_q1_0),
    quantised<DType::kQ2_0, Q2_0Block, unpack_q2_0>(encode_q2_0),
    quantised<DType::kNVFP4, Nvfp4Block, unpack_nvfp4>(encode_nvfp4),
};

}  // namespace

std::span<const Format> formats() noexcept { return kFormats; }

const Format* find_format(DType type) noexcept {
  for (const Format& format : kFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

}  // namespace gen::quant
