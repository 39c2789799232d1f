// SPDX-License-Identifier: Apache-2.0
// The gain of drafts: sessions with drafts and the same sessions without, in turns, so that other
// load on the machine affects both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_file.h"

namespace cli {

struct DraftsBench {
  std::vector<int32_t> sessions = {1, 2, 4, 8, 16};
  std::string text;  // a file whose pieces are the prompts; empty: made-up tokens
  double temperature = 0;
  bool gumbel = false;
  int32_t prompt = 128;  // tokens of each
  int32_t tokens = 32;   // to generate
  int32_t repeat = 5;    // pairs
  int32_t threads = 0;
  std::vector<std::string> lora;  // --lora, of all sessions
  bool json = false;
};

/// `model` has the drafters.
void bench_drafts(const ModelChoice& model, const DraftsBench& bench);

}  // namespace cli
