// SPDX-License-Identifier: Apache-2.0
// Finding and loading the model: the -m option, the bundled model, the progress bar.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands.h"
#include "handles.h"

namespace cli {

/// The options that every command with a model has.
struct ModelChoice {
  std::string path;                        // -m; empty means the bundled model
  int32_t threads = 0;                     // -t; 0 means one per usable CPU
  std::string backend;                     // --backend; empty means the default
  std::string device;                      // --device, as the option; empty means the first
  std::string gpu_layers;                  // --gpu-layers, as the option; empty means all
  std::string gpu_expert_layers;           // --gpu-expert-layers, the same
  bool in_place = false;                   // --in-place
  std::string pre_tokenizer;               // --pre-tokenizer; empty means the file's
  int32_t max_seq_len = 0;                 // --ctx; 0 means the model's own
  std::string kv = "fp32";                 // --kv
  std::string paged;                       // --paged, as the option paged_kv
  int32_t prefix_cache = 0;                // --prefix-cache; 0 for none
  int32_t compressed = 0;                  // --compressed
  std::string context = "stop";            // --context-policy, as the option
  std::string tiered;                      // --tiered; empty means that all is in memory
  std::string window_rewind;               // --window-rewind, as the option
  std::string window_copies;               // --window-copies, as the option
  std::string snapshot_every;              // --state-snapshot-every, as the option
  std::string snapshot_budget;             // --state-snapshot-budget, as the option
  bool deterministic = false;              // --deterministic
  bool special = false;                    // --special
  std::string draft;                       // --draft; empty: the head in the file, if any
  std::string eagle;                       // --eagle; empty means none
  int32_t draft_len = 0;                   // --draft-len; 0 means the drafter's own
  std::string draft_policy = "auto";       // --draft-policy, as the option
  std::string draft_acceptance = "exact";  // --draft-acceptance, as the option
};

/// `positional`: the file may be given without -m.
void add_model_options(CLI::App& command, ModelChoice& choice, bool positional = false);
/// The same without the options that choose where to compute.
void add_file_options(CLI::App& command, ModelChoice& choice, bool positional = false);
/// The options of caches, of windows and of snapshots of states.
void add_kv_option(CLI::App& command, ModelChoice& choice);
/// The error in a kind of cache, for a parser's check; empty if there is none.
std::string kv_problem(const std::string& text);
void add_draft_options(CLI::App& command, ModelChoice& choice);
void add_context_option(CLI::App& command, ModelChoice& choice);
void add_deterministic_option(CLI::App& command, ModelChoice& choice);

/// -m if given, else GEN_MODEL, else ../share/generate from the program's folder; if none exists, a
/// Failure names all three.
std::string find_file(const std::string& given, const char* bundled_name);
/// The model that --draft names; empty if there is none.
std::string draft_file(const ModelChoice& choice);

/// The choice as options for loading.
ModelOptions make_model_options(const ModelChoice& choice);
Options make_options(const ModelChoice& choice);
/// Applies --draft; loads its model, which the options keep alive. `loads`: without it such a model
/// is a Failure.
void use_drafts(const ModelChoice& choice, gen_options* options, bool loads = true);
/// Loads with a progress bar when standard error is a terminal.
Model load_model(const ModelChoice& choice);
Tokenizer load_tokenizer(const ModelChoice& choice);
Generator make_generator(const Model& model, const ModelChoice& choice);
/// An empty cache of the chosen kind with room for `tokens`.
Cache make_cache(const Model& model, const ModelChoice& choice, int32_t tokens);

}  // namespace cli
