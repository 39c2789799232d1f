// SPDX-License-Identifier: Apache-2.0
// Pretokenizer, see pretokenizer.h. Expressions nest: each splits what the previous one left.
#include "tokenizer/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <bit>
#include <new>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/white_space.h"

namespace gen::tokenizer {
namespace {

struct FreeCode {
  void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const noexcept {
    pcre2_match_context_free(context);
  }
};

// A run of one kind of character costs the interpreter a step and a frame for each of them, so
// the step limit grows with the text; the heap limit (in KiB) stops the interpreter at 512 MiB.
constexpr uint32_t kBaseMatchLimit = 10'000'000;
constexpr uint32_t kHeapLimitKib = 512U * 1024;

bool begins_character(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

size_t count_characters(std::string_view text) noexcept {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

// Of the first `characters`, which the text has.
size_t bytes_of(std::string_view text, size_t characters) noexcept {
  size_t bytes = 0;
  for (; characters > 0; --characters) {
    do {
      ++bytes;
    } while (bytes < text.size() && !begins_character(text[bytes]));
  }
  return bytes;
}

// White space other than line breaks.
bool ends_in_space(std::string_view text) noexcept {
  size_t at = text.size() - 1;
  while (at > 0 && !begins_character(text[at])) --at;
  const uint32_t last = utf8_next(text, &at);
  return last != '\n' && last != '\r' && is_white_space(last);
}

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[128] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

class Pretokenizer::Expression {
 public:
  explicit Expression(pcre2_code* code) : code_(code) {}
  [[nodiscard]] const pcre2_code* code() const noexcept { return code_.get(); }

 private:
  std::unique_ptr<pcre2_code, FreeCode> code_;
};

// One call of split: the match data of every expression, made when first needed.
class Pretokenizer::Run {
 public:
  Run(const Pretokenizer& owner, std::string_view text, WordSink* sink)
      : owner_(owner), sink_(sink), data_(owner.expressions_.size()) {
    context_.reset(pcre2_match_context_create(nullptr));
    if (!context_) throw std::bad_alloc();
    const size_t limit = std::min<size_t>(UINT32_MAX, kBaseMatchLimit + 16 * text.size());
    pcre2_set_match_limit(context_.get(), static_cast<uint32_t>(limit));
    pcre2_set_heap_limit(context_.get(), kHeapLimitKib);
    for (auto& data : data_) {
      data.reset(pcre2_match_data_create(1, nullptr));
      if (!data) throw std::bad_alloc();
    }
  }

  Status split(size_t level, std::string_view text) {
    if (text.empty()) return {};
    if (level == data_.size()) return sink_->word(text);
    size_t done = 0;
    while (done < text.size()) {
      size_t begin = done;
      size_t end = done;
      bool found = false;
      GEN_TRY(match(level, text, &begin, &end, &found));
      if (!found) break;
      GEN_TRY(split(level + 1, text.substr(done, begin - done)));
      GEN_TRY(cut(level, text.substr(begin, end - begin)));
      done = end;
    }
    return split(level + 1, text.substr(done));
  }

 private:
  // What an expression matched.
  Status cut(size_t level, std::string_view match) {
    if (level == 0 && (owner_.flags_ & kThreesFromRight) != 0) return cut_threes(match);
    if (level == 0 && (owner_.flags_ & kSpacesByPowers) != 0 && ends_in_space(match)) {
      return cut_powers(match);
    }
    return split(level + 1, match);
  }

  Status cut_threes(std::string_view digits) {
    size_t first = (count_characters(digits) - 1) % 3 + 1;
    while (!digits.empty()) {
      const size_t bytes = bytes_of(digits, first);
      GEN_TRY(split(1, digits.substr(0, bytes)));
      digits.remove_prefix(bytes);
      first = 3;
    }
    return {};
  }

  Status cut_powers(std::string_view spaces) {
    size_t left = count_characters(spaces);
    while (left > 0) {
      const size_t next = std::min<size_t>(std::bit_floor(left), 512);
      const size_t bytes = bytes_of(spaces, next);
      GEN_TRY(split(1, spaces.substr(0, bytes)));
      spaces.remove_prefix(bytes);
      left -= next;
    }
    return {};
  }

  // The first match at or after *begin. No expression of the table matches the empty text.
  Status match(size_t level, std::string_view text, size_t* begin, size_t* end, bool* found) {
    const int rc =
        pcre2_match(owner_.expressions_[level].code(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                    text.size(), *begin, PCRE2_NO_UTF_CHECK, data_[level].get(), context_.get());
    if (rc == PCRE2_ERROR_NOMATCH) return {};
    if (rc == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    if (rc < 0) {
      return error(Code::kTokenizer, "cannot split text of %zu bytes into words: %s", text.size(),
                   pcre2_message(rc).c_str());
    }
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data_[level].get());
    if (offsets[1] <= offsets[0]) {
      return error(Code::kInternal, "word expression %zu matches nothing", level);
    }
    *begin = offsets[0];
    *end = offsets[1];
    *found = true;
    return {};
  }

  const Pretokenizer& owner_;
  WordSink* sink_;
  std::vector<std::unique_ptr<pcre2_match_data, FreeMatchData>> data_;  // [level]
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context_;
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

Result<Pretokenizer> Pretokenizer::create(std::string_view name) {
  const PretokenizerRules* rules = find_pretokenizer_rules(name);
  if (rules == nullptr) {
    return error(Code::kUnsupported,
                 "pre-tokenizer '%.*s' is not known; the option pre_tokenizer names another: %s, …",
                 static_cast<int>(std::min<size_t>(name.size(), 64)), name.data(),
                 pretokenizer_examples().c_str());
  }
  Pretokenizer made;
  made.flags_ = rules->flags;
  for (const char* text : rules->expressions) {
    int code = 0;
    PCRE2_SIZE offset = 0;
    Expression expression(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text), PCRE2_ZERO_TERMINATED,
                                        PCRE2_UTF | PCRE2_UCP, &code, &offset, nullptr));
    if (expression.code() == nullptr) {
      if (code == PCRE2_ERROR_HEAP_FAILED) throw std::bad_alloc();
      return error(Code::kInternal, "word expression at %zu: %s", offset,
                   pcre2_message(code).c_str());
    }
    // Without it (on a system that forbids writable code) the interpreter does the same, only
    // slower.
    pcre2_jit_compile(const_cast<pcre2_code*>(expression.code()), PCRE2_JIT_COMPLETE);
    made.expressions_.push_back(std::move(expression));
  }
  return made;
}

Status Pretokenizer::split(std::string_view text, WordSink* sink) const {
  return Run(*this, text, sink).split(0, text);
}

}  // namespace gen::tokenizer
