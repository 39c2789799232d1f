// SPDX-License-Identifier: Apache-2.0
// SentencePiece's `.model` file, a protobuf message (ModelProto): the relevant fields, parsed
// directly from the wire format. Used by sentencepiece_tokenizer.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tokenizer/vocab.h"

namespace gen::tokenizer {

enum class SpModelType : int32_t { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };

/// Defaults are those of the schema.
struct SpModel {
  // pieces (1): piece (1), score (2), type (3)
  std::vector<std::string> pieces;
  std::vector<float> scores;     // [pieces]
  std::vector<TokenType> types;  // [pieces]
  // trainer_spec (2)
  SpModelType model_type = SpModelType::kUnigram;  // 3
  bool treat_whitespace_as_suffix = false;         // 24
  bool byte_fallback = false;                      // 35
  int32_t unk_id = 0;                              // 40
  int32_t bos_id = 1;                              // 41
  int32_t eos_id = 2;                              // 42
  int32_t pad_id = -1;                             // 43
  // normalizer_spec (3)
  std::string charsmap;                  // 2
  bool add_dummy_prefix = true;          // 3
  bool remove_extra_whitespaces = true;  // 4
  bool escape_whitespaces = true;        // 5
  // denormalizer_spec (5)
  bool has_denormalizer = false;  // with a charsmap of its own
};

/// kFormat naming the byte or the field. The contents are as the file has them, not checked.
Result<SpModel> parse_sp_model(std::span<const std::byte> file);

}  // namespace gen::tokenizer
