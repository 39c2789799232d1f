// SPDX-License-Identifier: Apache-2.0
// Many sessions at once, each in its own thread like the callers of a program: their total speed,
// and how long each waits for its next token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_file.h"

namespace cli {

struct SessionsBench {
  std::vector<int32_t> counts;
  int32_t prompt = 128;     // tokens of each, the maximum if mixed
  int32_t tokens = 32;      // to generate, likewise
  bool mixed = false;       // random lengths and arrivals, compared with the same one after another
  int32_t long_prompt = 0;  // one more session adds a prompt of that many tokens meanwhile
  int32_t prefill_chunk = 0;
  int32_t threads = 0;
  std::vector<std::string> lora;  // --lora
  bool lora_each = false;         // session i uses adapter i mod n alone, not all n
  bool json = false;
};

void bench_sessions(const ModelChoice& model, const SessionsBench& bench);

}  // namespace cli
