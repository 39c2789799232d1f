// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the random models.
#pragma once

#include <cstdint>
#include <string_view>

#include "support/gguf_writer.h"

namespace gen::test {

/// Writes it into a file of the architecture, and returns its size: SentencePiece with bytes,
/// letters, frequent groups of letters.
uint64_t set_random_vocabulary(std::string_view architecture, GgufWriter* gguf);

}  // namespace gen::test
