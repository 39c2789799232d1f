// SPDX-License-Identifier: Apache-2.0
// A case of `generate bench` with adapters. Only calls with settings take adapters, so sessions are
// measured instead of bare passes; what comes on top of the passes is the choice of tokens.
#pragma once

#include "adapters.h"
#include "bench_case.h"

namespace cli {

/// As measure(), with the adapters together, and without profiles. The work is the model's own,
/// without the adapters'. The case and one more token must fit the context.
Measurement measure_adapted(const Model& model, const ModelChoice& choice, const BenchCase& bench,
                            const Adapters& adapters);

}  // namespace cli
