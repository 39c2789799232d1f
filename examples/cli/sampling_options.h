// SPDX-License-Identifier: Apache-2.0
// The command-line options for sampling, shared by run and chat.
#pragma once

#include <cstdint>
#include <optional>
#include <array>
#include <string>
#include <vector>

#include "commands.h"
#include "grammar_options.h"
#include "handles.h"

namespace cli {

struct SamplingChoice {
  int32_t max_new_tokens = 256;
  double temperature = 0.8;
  int32_t top_k = 40;
  double top_p = 0.95;
  double typical_p = 1.0;
  double min_p = 0.05;
  double repetition_penalty = 1.0;
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  int32_t penalty_window = 0;
  std::optional<uint64_t> seed = 0;  // empty: a random one
  std::vector<std::string> stop;
  bool ignore_eos = false;
  bool gumbel = false;
  bool fit_grammar = true;
  std::vector<std::array<std::string, 3>> settings;  // by name: option, key, value
  GrammarChoice grammar;
};

void add_sampling_options(CLI::App& command, SamplingChoice& choice);
/// The given seed, or a new random one.
uint64_t seed_of(const SamplingChoice& choice);
Sampling make_sampling(const SamplingChoice& choice, uint64_t seed);

}  // namespace cli
