// SPDX-License-Identifier: Apache-2.0
// StreamDecoder, see stream_decoder.h.
#include "tokenizer/stream_decoder.h"

#include "base/utf8.h"

namespace gen::tokenizer {
namespace {

// Appends `text`, each byte that is no part of a character as U+FFFD.
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

Status StreamDecoder::feed(int32_t token, std::string* out) {
  std::string bytes = held_;
  GEN_TRY(tokenizer_->append_piece(token, previous_, special_as_text_, &bytes));
  const size_t complete = utf8_complete_prefix(bytes);
  std::string rest = bytes.substr(complete);
  append_repaired(std::string_view(bytes).substr(0, complete), out);
  held_ = std::move(rest);
  previous_ = token;
  return {};
}

void StreamDecoder::flush(std::string* out) {
  append_repaired(held_, out);
  held_.clear();
}

}  // namespace gen::tokenizer
