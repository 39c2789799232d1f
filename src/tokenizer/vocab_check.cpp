// SPDX-License-Identifier: Apache-2.0
// The checks of vocab_check.h, table by table.
#include "tokenizer/vocab_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/end_texts.h"

namespace gen::tokenizer {
namespace {

int32_t hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Status check_texts(const VocabSpec& spec) {
  if (spec.tokens.empty()) return error(Code::kFormat, "vocabulary has no tokens");
  if (spec.tokens.size() > kMaxTokens) {
    return error(Code::kFormat, "vocabulary of %zu tokens, limit %zu", spec.tokens.size(),
                 kMaxTokens);
  }
  size_t bytes = 0;
  for (const std::string& text : spec.tokens) bytes += text.size();
  if (bytes > INT32_MAX) {
    return error(Code::kFormat, "vocabulary of %zu bytes, limit %d", bytes, INT32_MAX);
  }
  std::unordered_map<std::string_view, size_t> seen;
  seen.reserve(spec.tokens.size());
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const std::string& text = spec.tokens[id];
    if (text.empty()) return error(Code::kFormat, "token %zu is empty", id);
    if (text.size() > kMaxTokenBytes) {
      return error(Code::kFormat, "token %zu has %zu bytes, limit %zu", id, text.size(),
                   kMaxTokenBytes);
    }
    const size_t valid = utf8_valid_prefix(text);
    if (valid != text.size()) {
      return error(Code::kFormat, "token %zu is not UTF-8 at byte %zu", id, valid);
    }
    const auto [other, fresh] = seen.emplace(text, id);
    if (!fresh) return error(Code::kFormat, "token %zu repeats token %zu", id, other->second);
  }
  return {};
}

Status check_scores(VocabSpec* spec) {
  if (spec->scores.empty() && !needs_scores(spec->kind)) {
    spec->scores.resize(spec->tokens.size());
  }
  if (spec->scores.size() != spec->tokens.size()) {
    return error(Code::kFormat, "vocabulary has %zu scores for %zu tokens", spec->scores.size(),
                 spec->tokens.size());
  }
  for (size_t id = 0; id < spec->scores.size(); ++id) {
    if (!std::isfinite(spec->scores[id])) {
      return error(Code::kFormat, "score of token %zu is not a finite number", id);
    }
  }
  return {};
}

Status check_types(VocabSpec* spec) {
  if (spec->types.empty() && !needs_scores(spec->kind)) {
    spec->types.resize(spec->tokens.size(), TokenType::kNormal);
  }
  if (spec->types.size() != spec->tokens.size()) {
    return error(Code::kFormat, "vocabulary has %zu token types for %zu tokens", spec->types.size(),
                 spec->tokens.size());
  }
  std::array<bool, 256> byte_seen{};
  for (size_t id = 0; id < spec->types.size(); ++id) {
    const auto type = static_cast<int32_t>(spec->types[id]);
    if (type == 0) spec->types[id] = TokenType::kNormal;
    if (type < 0 || type > 6) {
      return error(Code::kFormat, "token %zu has type %d, known are 1 to 6", id, type);
    }
    if (spec->types[id] == TokenType::kByte) {
      const int32_t byte = parse_byte_token(spec->tokens[id]);
      if (byte < 0) return error(Code::kFormat, "byte token %zu is not of the form <0x0A>", id);
      byte_seen[static_cast<size_t>(byte)] = true;
    } else if (is_control_text(spec->tokens[id])) {
      spec->types[id] = TokenType::kControl;
    }
  }
  const auto bytes = std::count(byte_seen.begin(), byte_seen.end(), true);
  if (!is_byte_bpe(spec->kind) && bytes != 0 && bytes != 256) {
    return error(Code::kFormat, "vocabulary has byte tokens for %d of 256 bytes",
                 static_cast<int>(bytes));
  }
  return {};
}

Status check_ids(const VocabSpec& spec) {
  const std::pair<const char*, int32_t> ids[] = {
      {"bos", spec.bos},     {"eos", spec.eos}, {"unknown", spec.unk}, {"separator", spec.sep},
      {"padding", spec.pad}, {"eot", spec.eot}, {"eom", spec.eom}};
  for (const auto& [name, id] : ids) {
    if (id < -1 || (id >= 0 && static_cast<size_t>(id) >= spec.tokens.size())) {
      return error(Code::kFormat, "%s token %d outside vocabulary of %zu", name, id,
                   spec.tokens.size());
    }
  }
  return {};
}

}  // namespace

int32_t parse_byte_token(std::string_view text) noexcept {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const int32_t high = hex_digit(text[3]);
  const int32_t low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Status check_and_complete(VocabSpec* spec) {
  if (spec->kind < VocabKind::kSentencePiece || spec->kind > VocabKind::kHybridDna) {
    return error(Code::kInvalidArgument, "vocabulary kind %d is not known",
                 static_cast<int>(spec->kind));
  }
  GEN_TRY(check_texts(*spec));
  GEN_TRY(check_scores(spec));
  GEN_TRY(check_types(spec));
  return check_ids(*spec);
}

}  // namespace gen::tokenizer
