// SPDX-License-Identifier: Apache-2.0
// Help for options that are the library's: what its *_describe functions say of them.
#pragma once

#include <string>

namespace cli {

/// What the option does, and what it may be: "keeps the k largest logits (0 and up)". The key must
/// be one of gen_model_options, gen_options or gen_sampling.
std::string model_help(const char* key);
std::string generator_help(const char* key);
std::string sampling_help(const char* key);

}  // namespace cli
