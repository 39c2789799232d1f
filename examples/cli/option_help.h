// SPDX-License-Identifier: Apache-2.0
// Help for options that are the library's: what its *_describe functions say of them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace cli {

/// What the option does, and what it may be unless it is on or off: "keeps the k largest logits (0
/// and up)". The key must be one of gen_model_options, gen_options or gen_sampling.
std::string model_help(const char* key);
std::string generator_help(const char* key);
std::string sampling_help(const char* key);
/// What a setting is where nobody sets it; "" of one that has no value then.
std::string sampling_default(const char* key);
/// All options of grammars, one below the other, with their ranges and defaults.
std::string grammar_options_help();

/// Has an option take whole numbers from `least` up; help calls them N.
CLI::Option* takes_count(CLI::Option* option, int32_t least = 1);

}  // namespace cli
