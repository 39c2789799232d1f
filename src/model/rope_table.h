// SPDX-License-Identifier: Apache-2.0
// Rotary tables: every scaling rule becomes one list of inverse frequencies and one magnitude, made
// here in double precision and rounded once.
#pragma once

#include <span>

#include "graph/graph.h"
#include "model/hparams.h"

namespace gen::model {

/// With f[i] = base^(-2i / n_dims) / factors[i], i in [0, n_dims / 2):
///   none     f[i]
///   linear   f[i] / factor
///   llama3   f[i] divided by 1 for wavelengths below original / high, by `factor` above
///            original / low, and in between by 1 / ((1 - s) / factor + s) with
///            s = (original / wavelength - low) / (high - low)
///   yarn     f[i] * ((1 - m) / factor + m) with m = ext * (1 - clamp((i - lo) / (hi - lo), 0, 1)),
///            lo and hi the pairs that turn beta_fast and beta_slow times within the original
///            context, rounded outwards; cos and sin grow by 1 + 0.1 ln(factor)
/// `factors` is the tensor rope_freqs.weight, [n_dims / 2], or empty. When it is given it already
/// holds the llama3 rule.
graph::RopeSpec make_rope_table(const RopeParams& params, std::span<const float> factors = {});

}  // namespace gen::model
