// SPDX-License-Identifier: Apache-2.0
// A vocabulary for tiny models that are loaded through the C API, which need one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/gguf_writer.h"

namespace gen::test {

/// "a", "b", "ab", "t3", "t4", … up to `n` pieces.
inline std::vector<std::string> tiny_pieces(int32_t n) {
  std::vector<std::string> pieces = {"a", "b", "ab"};
  for (int32_t i = 3; i < n; ++i) pieces.push_back("t" + std::to_string(i));
  return pieces;
}

/// Byte-level BPE of `pieces`, the first ones of which are tiny_pieces().
inline GgufWriter& set_tiny_vocabulary(GgufWriter* writer, const std::vector<std::string>& pieces) {
  return writer->set_string("tokenizer.ggml.model", "gpt2")
      .set_strings("tokenizer.ggml.tokens", pieces)
      .set_strings("tokenizer.ggml.merges", {"a b"});
}

}  // namespace gen::test
