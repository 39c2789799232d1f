// SPDX-License-Identifier: Apache-2.0
// The program's commands. Each file adds its options to the parser and a callback that does the
// work; shared options are in model_file.h and sampling_options.h.
#pragma once

#include <CLI/CLI.hpp>

namespace cli {

void add_run(CLI::App& app);
void add_chat(CLI::App& app);
void add_template(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_logits(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_features(CLI::App& app);
void add_estimate(CLI::App& app);
void add_inspect(CLI::App& app);
void add_bench(CLI::App& app);
void add_imatrix(CLI::App& app);
void add_quantize(CLI::App& app);
void add_merge(CLI::App& app);
void add_grammar(CLI::App& app);

}  // namespace cli
