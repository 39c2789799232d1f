// SPDX-License-Identifier: Apache-2.0
// Help for options of the library, from its *_describe functions.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace cli {

/// The option's help and its range, unless it is a flag: "keeps the k largest logits (0 and up)".
/// The key must be one of gen_model_options, gen_options or gen_sampling.
std::string model_help(const char* key);
std::string generator_help(const char* key);
std::string sampling_help(const char* key);
/// generator_help() with the default: "… (0 and up; default 2)".
std::string generator_help_and_default(const char* key);
/// The default of a setting; "" if it has none.
std::string sampling_default(const char* key);
/// All options of grammars, one per line, with their ranges and defaults.
std::string grammar_options_help();

/// Restricts an option to whole numbers from `least` up; help shows them as N.
CLI::Option* takes_count(CLI::Option* option, int32_t least = 1);

}  // namespace cli
