// SPDX-License-Identifier: Apache-2.0
// VocabTokenizer, see vocab_tokenizer.h. Encoding has three steps: split the segments at special
// tokens, join the remaining text of adjacent segments, pass each stretch of text to the kind.
#include "tokenizer/vocab_tokenizer.h"

#include <utility>

#include "base/utf8.h"
#include "tokenizer/end_texts.h"

namespace gen::tokenizer {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;
constexpr uint32_t kAllFlags = kAddBos | kParseSpecial;

constexpr bool is_ascii_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Removes what was appended, unless told that all went well; also if an allocation throws.
class AppendGuard {
 public:
  explicit AppendGuard(std::vector<int32_t>* out) : out_(out), size_(out->size()) {}
  AppendGuard(const AppendGuard&) = delete;
  AppendGuard& operator=(const AppendGuard&) = delete;
  ~AppendGuard() {
    if (!kept_) out_->erase(out_->begin() + static_cast<std::ptrdiff_t>(size_), out_->end());
  }
  void keep() noexcept { kept_ = true; }

 private:
  std::vector<int32_t>* out_;
  size_t size_;
  bool kept_ = false;
};

Status check_segments(std::span<const TextSegment> segments) {
  size_t total = 0;
  for (const TextSegment& segment : segments) {
    if (segment.text.size() > kMaxTextBytes - total) {
      return error(Code::kInvalidArgument, "text of more than %zu bytes", kMaxTextBytes);
    }
    total += segment.text.size();
  }
  for (const TextSegment& segment : segments) {
    const size_t valid = utf8_valid_prefix(segment.text);
    if (valid != segment.text.size()) {
      return error(Code::kTokenizer, "text is not UTF-8 at byte %zu (0x%02x)", valid,
                   static_cast<unsigned>(static_cast<unsigned char>(segment.text[valid])));
    }
  }
  return {};
}

}  // namespace

VocabTokenizer::VocabTokenizer(VocabSpec spec, SpecialRules rules)
    : spec_(std::move(spec)), rules_(rules), end_tokens_(find_end_tokens(spec_)) {
  for (size_t i = 0; i < spec_.tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const TokenType type = spec_.types[i];
    if (type == TokenType::kUserDefined) {
      if (!rules_.split_user_tokens) continue;
      user_tokens_.add(spec_.tokens[i], id);
    } else if (type != TokenType::kControl && type != TokenType::kUnknown) {
      continue;
    }
    special_tokens_.add(spec_.tokens[i], id);
  }
  user_tokens_.finish();
  special_tokens_.finish();
  piece_begin_.reserve(spec_.tokens.size() + 1);
  piece_begin_.push_back(0);
}

void VocabTokenizer::add_piece(std::string_view bytes) {
  piece_bytes_.append(bytes);
  piece_begin_.push_back(piece_bytes_.size());
}

Status VocabTokenizer::encode_segments(std::span<const TextSegment> segments, uint32_t flags,
                                       int32_t previous, std::vector<int32_t>* out) const {
  if ((flags & ~kAllFlags) != 0) {
    return error(Code::kInvalidArgument, "encode flags 0x%x, known are 0x%x", flags, kAllFlags);
  }
  GEN_TRY(check_segments(segments));
  AppendGuard guard(out);
  GEN_TRY(encode_fragments(split(segments, previous), flags, previous, out));
  guard.keep();
  return {};
}

std::vector<VocabTokenizer::Fragment> VocabTokenizer::split(std::span<const TextSegment> segments,
                                                            int32_t previous) const {
  std::vector<Fragment> fragments;
  bool strip = strips_right(previous);  // white space belongs to the special token before it
  const auto add_text = [&](std::string_view text) {
    while (strip && !text.empty() && is_ascii_space(text.front())) text.remove_prefix(1);
    if (text.empty()) return;
    strip = false;
    fragments.push_back({text, -1});
  };
  for (const TextSegment& segment : segments) {
    const SpecialMatcher& matcher = segment.parse_special ? special_tokens_ : user_tokens_;
    size_t offset = 0;
    while (const auto match = matcher.find(segment.text, offset)) {
      add_text(segment.text.substr(offset, match->begin - offset));
      fragments.push_back({{}, match->id});
      strip = strips_right(match->id);
      offset = match->end;
    }
    add_text(segment.text.substr(offset));
  }
  return fragments;
}

Status VocabTokenizer::encode_fragments(std::span<const Fragment> fragments, uint32_t flags,
                                        int32_t previous, std::vector<int32_t>* out) const {
  const bool begins_with_bos = !fragments.empty() && fragments.front().token == spec_.bos;
  const size_t first = out->size();
  if ((flags & kAddBos) != 0 && spec_.bos >= 0 && !begins_with_bos) out->push_back(spec_.bos);
  for (size_t i = 0; i < fragments.size();) {
    if (fragments[i].token >= 0) {
      out->push_back(fragments[i].token);
      ++i;
      continue;
    }
    const bool goes_on = out->size() == first && !starts_text(previous);
    size_t end = i + 1;
    while (end < fragments.size() && fragments[end].token < 0) ++end;
    if (end == i + 1) {
      GEN_TRY(encode_text(fragments[i].text, goes_on, out));
    } else {
      std::string joined;
      for (size_t part = i; part < end; ++part) joined.append(fragments[part].text);
      GEN_TRY(encode_text(joined, goes_on, out));
    }
    i = end;
  }
  return {};
}

bool VocabTokenizer::strips_right(int32_t id) const noexcept {
  if (!spec_.special_strips_right || id < 0 || id >= vocab_size()) return false;
  const TokenType type = spec_.types[static_cast<size_t>(id)];
  if (type != TokenType::kControl && type != TokenType::kUserDefined) return false;
  const std::string_view text = spec_.tokens[static_cast<size_t>(id)];
  return text != "<s>" && text != "<unk>" && text != "<|endoftext|>";
}

bool VocabTokenizer::starts_text(int32_t previous) const noexcept {
  if (previous == kInText) return false;
  if (previous < 0 || previous >= vocab_size()) return true;
  const TokenType type = spec_.types[static_cast<size_t>(previous)];
  return type == TokenType::kControl ||
         (type == TokenType::kUserDefined && rules_.space_after_user_tokens);
}

Status VocabTokenizer::append_piece(int32_t id, int32_t previous, bool special_as_text,
                                    std::string* out) const {
  if (id < 0 || id >= vocab_size()) {
    return error(Code::kOutOfRange, "token %d outside vocabulary of %d", id, vocab_size());
  }
  const auto index = static_cast<size_t>(id);
  const TokenType type = spec_.types[index];
  const bool hidden = type == TokenType::kControl || type == TokenType::kUnknown;
  if (hidden && !special_as_text) return {};
  std::string_view bytes(piece_bytes_.data() + piece_begin_[index],
                         piece_begin_[index + 1] - piece_begin_[index]);
  const bool plain = type == TokenType::kNormal || type == TokenType::kUnused;
  if (plain && rules_.space_prefix && bytes.starts_with(' ') && starts_text(previous)) {
    bytes.remove_prefix(1);
  }
  out->append(bytes);
  return {};
}

int32_t VocabTokenizer::vocab_size() const noexcept {
  return static_cast<int32_t>(spec_.tokens.size());
}

int32_t VocabTokenizer::special(Special kind) const noexcept {
  switch (kind) {
    case Special::kBos:
      return spec_.bos;
    case Special::kEos:
      return spec_.eos;
    case Special::kUnk:
      return spec_.unk;
    case Special::kSep:
      return spec_.sep;
    case Special::kPad:
      return spec_.pad;
    case Special::kEot:
      return spec_.eot;
    case Special::kEom:
      return spec_.eom;
  }
  return -1;
}

bool VocabTokenizer::is_control(int32_t id) const noexcept {
  return id >= 0 && id < vocab_size() &&
         spec_.types[static_cast<size_t>(id)] == TokenType::kControl;
}

}  // namespace gen::tokenizer
