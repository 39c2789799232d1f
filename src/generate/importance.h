// SPDX-License-Identifier: Apache-2.0
// Makes the importance matrix of a model: evaluates a text in windows and writes the file
// (model/importance_sums.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/status.h"
#include "engine/memory.h"
#include "model/model.h"

namespace gen::generate {

struct ImportanceRun {
  std::span<const int32_t> tokens;
  int32_t window = 0;   // tokens of one, with `bos`; 0: 512, or the context if that is less
  int32_t bos = -1;     // the token before each window; -1: none
  std::string dataset;  // the text's name, for the file
};

/// Splits the tokens into windows, the last as long as what is left, each in a sequence of its own
/// in `memory`, and writes `out`, which appears whole or not at all. Errors: as check_tokens;
/// kOutOfRange for a window that holds no token or exceeds the context; those of
/// Model::observable(), of the passes, of ImportanceSums and of NewFile; kCancelled if `progress`,
/// which is called with the share done after each window, returns false.
Status write_importance(const model::Model& model, engine::EngineMemory& memory,
                        const ImportanceRun& run, const std::string& out,
                        const std::function<bool(double)>& progress);

}  // namespace gen::generate
