// SPDX-License-Identifier: Apache-2.0
// Token texts with a fixed meaning across model families. Model files often omit which tokens end a
// turn, or give such tokens the wrong type; their texts identify them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/vocab.h"

namespace gen::tokenizer {

/// Texts that are control tokens whatever type the file gives them. A message must never be able to
/// write one of them.
bool is_control_text(std::string_view text) noexcept;

/// The ids at which generation stops, ascending. The spec is complete (vocab_check.h).
std::vector<int32_t> find_end_tokens(const VocabSpec& spec);

}  // namespace gen::tokenizer
