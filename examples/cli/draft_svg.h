// SPDX-License-Identifier: Apache-2.0
// A picture of an answer: which of its tokens were drafted and accepted, and what was drafted in
// vain.
#pragma once

#include <string>

#include "handles.h"

namespace cli {

/// The picture as SVG, of the first part of a long answer. `title` stands above it.
std::string draft_svg(const std::string& title, const gen_result* result,
                      const gen_tokenizer* tokenizer);

}  // namespace cli
