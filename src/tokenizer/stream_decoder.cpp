// SPDX-License-Identifier: Apache-2.0
// StreamDecoder, see stream_decoder.h.
#include "tokenizer/stream_decoder.h"

#include "base/utf8.h"

namespace gen::tokenizer {
namespace {

// Appends `text`, with U+FFFD for each byte that is not part of a character.
void append_repaired(std::string_view text, std::string* out) {
  size_t offset = 0;
  while (offset < text.size()) {
    const size_t valid = utf8_valid_prefix(text.substr(offset));
    out->append(text.substr(offset, valid));
    offset += valid;
    if (offset < text.size()) utf8_append(utf8_next(text, &offset), out);
  }
}

}  // namespace

Status StreamDecoder::resume(std::span<const int32_t> before) {
  constexpr size_t kMaxHeld = 3;  // bytes, and a token that holds some holds at least one
  std::string bytes;
  for (size_t i = before.size(); i > 0 && before.size() - i < kMaxHeld; --i) {
    std::string piece;
    GEN_TRY(tokenizer_->append_piece(before[i - 1], i > 1 ? before[i - 2] : -1, special_as_text_,
                                     &piece));
    if (piece.empty()) break;
    bytes.insert(0, piece);
  }
  held_ = bytes.substr(utf8_complete_prefix(bytes));
  previous_ = before.empty() ? -1 : before.back();
  return {};
}

Status StreamDecoder::feed(int32_t token, std::string* out) {
  std::string bytes = held_;
  GEN_TRY(tokenizer_->append_piece(token, previous_, special_as_text_, &bytes));
  previous_ = token;
  if (bytes.size() == held_.size()) {  // no text: see resume()
    flush(out);
    return {};
  }
  const size_t complete = utf8_complete_prefix(bytes);
  std::string rest = bytes.substr(complete);
  append_repaired(std::string_view(bytes).substr(0, complete), out);
  held_ = std::move(rest);
  return {};
}

void StreamDecoder::flush(std::string* out) {
  append_repaired(held_, out);
  held_.clear();
}

}  // namespace gen::tokenizer
