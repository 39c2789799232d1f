// SPDX-License-Identifier: Apache-2.0
// How encoders of types with blocks of 256 find scales: each run of weights is fitted by search for
// the least squared error, then the scales are rounded to the few bits that the block has for them,
// and the weights to what is left. Everything that differs from type to type comes from its traits.
#pragma once

#include <cstdint>

#include "quant/traits.h"

namespace gen::quant {

/// Fills codes, d, dmin, scales and minima for 256 weights of a type with minima; scales and minima
/// are in [0, top]. `importance` of the weights may be null, here and below.
void fit_with_minima(const Traits& traits, int top, const float* x, const float* importance,
                     BlockParts& parts);

/// Fills codes, d and scales for 256 weights of a type without minima; scales are in
/// [-top, top - 1].
void fit_signed(const Traits& traits, int top, const float* x, const float* importance,
                BlockParts& parts);

/// The scale of either sign with which levels of the type come closest to n weights, at most 32.
float fit_scale(const Traits& traits, const float* x, const float* importance, int n);

/// The same as binary16, and the codes of the weights.
uint16_t fit_codes(const Traits& traits, const float* x, const float* importance, int n,
                   uint8_t* codes);

/// 32 weights to w = d * code + m, code in [0, top].
void fit_between(const float* x, const float* importance, int top, uint16_t* d, uint16_t* m,
                 uint8_t* codes);

/// The code whose level is nearest to `level`.
uint8_t nearest_code(const Traits& traits, float level) noexcept;

}  // namespace gen::quant
