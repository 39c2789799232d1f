// SPDX-License-Identifier: Apache-2.0
// See draft_vocabulary.h.
#include "generate/draft/draft_vocabulary.h"

#include <algorithm>
#include <string>

namespace gen::generate {
namespace {

using tokenizer::TokenType;
using tokenizer::VocabSpec;

TokenType type_of(const VocabSpec& spec, size_t token) {
  return token < spec.types.size() ? spec.types[token] : TokenType::kNormal;
}

/// Converters write such texts for embedding rows without a token.
bool is_padding(const VocabSpec& spec, size_t token) {
  return type_of(spec, token) == TokenType::kUnused || spec.tokens[token].starts_with("[PAD");
}

}  // namespace

Result<int32_t> common_vocabulary(const model::Model& draft,
                                  const tokenizer::Tokenizer* draft_tokenizer,
                                  const model::Model& target,
                                  const tokenizer::Tokenizer* target_tokenizer) {
  const int32_t draft_size = draft.traits().vocab_size;
  const int32_t target_size = target.traits().vocab_size;
  if (draft_tokenizer == nullptr || target_tokenizer == nullptr) {
    if (draft_size == target_size) return draft_size;
    return error(Code::kInvalidArgument,
                 "the draft model has %d tokens and the model %d, and there are no tokenizers to "
                 "compare them by",
                 draft_size, target_size);
  }
  const VocabSpec& own = draft_tokenizer->spec();
  const VocabSpec& other = target_tokenizer->spec();
  const size_t common = std::min(own.tokens.size(), other.tokens.size());
  for (size_t token = 0; token < common; ++token) {
    if (own.tokens[token] == other.tokens[token]) continue;
    if (is_padding(own, token) && is_padding(other, token)) continue;
    return error(Code::kInvalidArgument,
                 "token %zu of the draft model is \"%.40s\" and the model's is \"%.40s\": they "
                 "need the same vocabulary",
                 token, own.tokens[token].c_str(), other.tokens[token].c_str());
  }
  const bool draft_has_more = own.tokens.size() > common;
  const VocabSpec& longer = draft_has_more ? own : other;
  for (size_t token = common; token < longer.tokens.size(); ++token) {
    if (is_padding(longer, token)) continue;
    return error(Code::kInvalidArgument,
                 "token %zu, \"%.40s\", is in the vocabulary of the %s alone", token,
                 longer.tokens[token].c_str(), draft_has_more ? "draft model" : "model");
  }
  return std::min({static_cast<int32_t>(common), draft_size, target_size});
}

}  // namespace gen::generate
