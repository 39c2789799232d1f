// SPDX-License-Identifier: Apache-2.0
// See json_canonical.h. Strings begin with their length, numbers end with a terminator, and
// containers are closed, so no form is a prefix of another.
#include "grammar/json/json_canonical.h"

#include <algorithm>
#include <cstdint>

#include "base/utf8.h"
#include "grammar/base/text_reader.h"

namespace gen::grammar {
namespace {

constexpr size_t kSmallExponent = 17;  // digits that 64 bits hold with room to spare

unsigned hex_of(char c) {
  return is_digit(c) ? static_cast<unsigned>(c - '0')
                     : (static_cast<unsigned>(c) | 0x20U) - 'a' + 10U;
}

// The sum of a number with more digits than kSmallExponent and a small one, of either sign.
std::string sum(std::string digits, int64_t small) {
  for (size_t i = digits.size(); i-- > 0 && small != 0;) {
    int64_t here = (digits[i] - '0') + small;
    small = 0;
    if (here < 0 || here > 9) {
      small = here / 10;
      here %= 10;
      if (here < 0) {
        here += 10;
        --small;
      }
    }
    digits[i] = static_cast<char>('0' + here);
  }
  if (small > 0) digits.insert(0, std::to_string(small));
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

}  // namespace

void JsonCanonical::write(std::string_view text, std::string* out) {
  text_ = text;
  at_ = 0;
  out_ = out;
  out->clear();
  open_.clear();
  members_.clear();
  n_parts_ = 0;
  end_of_parts_ = 0;
  bool expects_name = false;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    switch (c) {
      case '"':
        if (expects_name) members_.push_back(out_->size());
        expects_name = false;
        read_string();
        break;
      case '{':
      case '[':
        open_.push_back({members_.size(), c == '{'});
        expects_name = c == '{';
        out_->push_back(c);
        ++at_;
        break;
      case '}':
      case ']':
        if (!open_.empty()) {
          if (open_.back().object) sort_members(open_.back().first_member);
          members_.resize(open_.back().first_member);
          open_.pop_back();
        }
        expects_name = false;
        out_->push_back(c);
        ++at_;
        break;
      case ',':
        expects_name = !open_.empty() && open_.back().object;
        if (open_.size() == 1) {
          n_parts_ = members_.size();
          end_of_parts_ = out_->size();
        }
        ++at_;
        break;
      case 't':
      case 'f':
      case 'n':
        out_->push_back(c);
        while (at_ < text_.size() && text_[at_] >= 'a' && text_[at_] <= 'z') ++at_;
        break;
      default:
        if (c == '-' || is_digit(c)) {
          read_number();
        } else {
          ++at_;
        }
        break;
    }
  }
}

void JsonCanonical::read_string() {
  const size_t begin = out_->size();
  out_->append("s0000");
  ++at_;
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] == '\\') {
      read_escape();
    } else {
      out_->push_back(text_[at_++]);
    }
  }
  if (at_ < text_.size()) ++at_;
  const size_t length = out_->size() - begin - kBeforeString;
  for (unsigned i = 0; i < 4; ++i) {
    (*out_)[begin + 1 + i] = static_cast<char>(length >> (8 * i));
  }
}

void JsonCanonical::read_escape() {
  if (++at_ >= text_.size()) return;
  const auto unit = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = at; i < at + 4 && i < text_.size(); ++i) {
      value = value << 4U | (hex_of(text_[i]) & 15U);
    }
    return value;
  };
  const char c = text_[at_++];
  switch (c) {
    case 'b':
      return out_->push_back('\b');
    case 'f':
      return out_->push_back('\f');
    case 'n':
      return out_->push_back('\n');
    case 'r':
      return out_->push_back('\r');
    case 't':
      return out_->push_back('\t');
    case 'u': {
      uint32_t character = unit(at_);
      at_ = std::min(at_ + 4, text_.size());
      if (character >= 0xD800 && character < 0xDC00 && at_ + 6 <= text_.size()) {
        character = 0x10000U + ((character & 0x3FFU) << 10U | (unit(at_ + 2) & 0x3FFU));
        at_ += 6;
      }
      utf8_append(character, out_);
      return;
    }
    default:
      out_->push_back(c);
  }
}

// A sign, digits that neither begin nor end with zero, and a power of ten.
void JsonCanonical::read_number() {
  const bool negative = text_[at_] == '-';
  if (negative) ++at_;
  const size_t begin = out_->size();
  out_->append(negative ? "n-" : "n+");
  const size_t digits = out_->size();
  int64_t shift = 0;  // of the point, relative to the digits kept
  bool behind_point = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '.') {
      behind_point = true;
    } else if (is_digit(c)) {
      if (behind_point) --shift;
      if (c != '0' || out_->size() > digits) out_->push_back(c);
    } else {
      break;
    }
  }
  while (out_->size() > digits && out_->back() == '0') {
    out_->pop_back();
    ++shift;
  }
  bool minus = false;
  size_t first = at_;
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) minus = text_[at_++] == '-';
    while (at_ < text_.size() && text_[at_] == '0') ++at_;
    first = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  }
  if (out_->size() == digits) {
    out_->resize(begin);
    out_->append("n0;");
    return;
  }
  const std::string_view exponent = text_.substr(first, at_ - first);
  out_->push_back('e');
  if (exponent.size() <= kSmallExponent) {
    int64_t value = 0;
    for (const char c : exponent) value = 10 * value + (c - '0');
    out_->append(std::to_string((minus ? -value : value) + shift));
  } else {
    if (minus) out_->push_back('-');
    out_->append(sum(std::string(exponent), minus ? -shift : shift));
  }
  out_->push_back(';');
}

void JsonCanonical::sort_members(size_t first) {
  if (members_.size() < first + 2) return;
  const std::string_view all = *out_;
  const size_t begin = members_[first];
  sorted_.clear();
  for (size_t i = first; i < members_.size(); ++i) {
    const size_t end = i + 1 < members_.size() ? members_[i + 1] : all.size();
    sorted_.push_back(all.substr(members_[i], end - members_[i]));
  }
  if (std::is_sorted(sorted_.begin(), sorted_.end())) return;
  std::sort(sorted_.begin(), sorted_.end());
  copy_.clear();
  for (const std::string_view member : sorted_) copy_ += member;
  out_->replace(begin, copy_.size(), copy_);
}

}  // namespace gen::grammar
