// SPDX-License-Identifier: Apache-2.0
// Tokenizer: text to token ids and back. create_tokenizer builds one from a VocabSpec (vocab.h)
// that may be hostile; the two kinds are in sentencepiece_tokenizer.cpp and bpe_tokenizer.cpp. Text
// that arrives token by token goes through stream_decoder.h, conversations through
// chat/chat_form.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/vocab.h"

namespace gen::tokenizer {

enum EncodeFlag : uint32_t {
  kAddBos = 1U << 0,  // begin with BOS, if there is one and the text does not begin with it itself
  kParseSpecial = 1U << 1,  // texts of control tokens become those tokens; else they are plain text
};

/// What may stand before a text in place of a token.
inline constexpr int32_t kTextStart = -1;  // nothing
inline constexpr int32_t kInText = -2;     // any token of plain text

enum class Special : int32_t { kBos, kEos, kUnk, kSep, kPad, kEot, kEom };

/// A stretch of a text whose parts are not trusted alike.
struct TextSegment {
  std::string_view text;
  bool parse_special = false;
};

/// What another room makes of a vocabulary once and keeps with it.
class Derived {
 public:
  virtual ~Derived() = default;
};

/// Places for it.
enum class Kept : uint8_t { kVocabulary, kChat };

/// A vocabulary with its rules.
/// Threads: immutable; any number of threads may use one object.
class Tokenizer {
 public:
  Tokenizer() = default;
  virtual ~Tokenizer() {
    for (const auto& kept : derived_) delete kept.load();
  }
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Appends the ids of `text`; on failure appends nothing. User-defined tokens are found in any
  /// text, control tokens only with kParseSpecial. `previous` is the token that the text comes
  /// after. At the start of a text and after a special token some vocabularies put a space, which
  /// decoding takes away, or drop spaces; anywhere else a text goes on as it is, so that texts
  /// encoded one after another decode to all of them together. Some families want texts in
  /// Unicode's form C, and decode to that. Errors: kTokenizer for invalid UTF-8 (naming the byte)
  /// and for a character that the vocabulary cannot express; kInvalidArgument for an unknown flag
  /// or more than 1 GiB.
  Status encode(std::string_view text, uint32_t flags, std::vector<int32_t>* out,
                int32_t previous = kTextStart) const;

  /// The same for a text in stretches: tokens may run over the borders between them, but control
  /// tokens are found only inside stretches that ask for it. Each stretch holds whole characters.
  /// kAddBos is the only flag.
  virtual Status encode_segments(std::span<const TextSegment> segments, uint32_t flags,
                                 int32_t previous, std::vector<int32_t>* out) const = 0;

  /// Appends the bytes of one token, which need not be whole characters. `previous` is the token
  /// before it or kTextStart: where encoding puts a space before a text (at its start and after a
  /// special token), that space is not part of the piece. Control tokens give nothing unless
  /// `special_as_text`. kOutOfRange for an id outside the vocabulary.
  virtual Status append_piece(int32_t id, int32_t previous, bool special_as_text,
                              std::string* out) const = 0;

  /// Appends the text of `ids`, bytes that are no UTF-8 as U+FFFD. On failure appends nothing.
  Status decode(std::span<const int32_t> ids, bool special_as_text, std::string* out) const;
  /// The same with every byte as it is.
  Status decode_bytes(std::span<const int32_t> ids, bool special_as_text, std::string* out) const;

  [[nodiscard]] virtual int32_t vocab_size() const noexcept = 0;
  /// -1 if the vocabulary has none.
  [[nodiscard]] virtual int32_t special(Special kind) const noexcept = 0;
  /// Whether `id` is a control token; false outside the vocabulary.
  [[nodiscard]] virtual bool is_control(int32_t id) const noexcept = 0;
  /// Ids that end a turn or a text, ascending: eos, eot, eom and control tokens whose texts are
  /// known for it, such as <|im_end|>. Generation stops at each of them.
  [[nodiscard]] virtual std::span<const int32_t> end_tokens() const noexcept = 0;
  /// What the tokenizer was made from: raw token texts, scores, types, whether to add BOS, the chat
  /// template. `types` and `scores` are always full here.
  [[nodiscard]] virtual const VocabSpec& spec() const noexcept = 0;

  /// What was kept in a place of the tokenizer, or null; and keeps `made` unless there is
  /// something: what is kept then. Without locks, so that a child of fork() can use the tokenizer
  /// at any time.
  [[nodiscard]] std::shared_ptr<const Derived> derived(Kept place) const noexcept;
  std::shared_ptr<const Derived> keep_derived(std::shared_ptr<const Derived> made,
                                              Kept place) const;

 private:
  mutable std::atomic<const std::shared_ptr<const Derived>*> derived_[2] = {};  // owned
};

/// Checks the vocabulary and builds its tokenizer. Errors: kFormat naming the entry,
/// kUnsupported for a pre-tokenizer that is not known.
Result<std::shared_ptr<const Tokenizer>> create_tokenizer(VocabSpec spec);

/// A plain SentencePiece `.model` file (unigram or BPE), given as its bytes. kFormat if it is
/// damaged, kUnsupported for another kind of model.
Result<std::shared_ptr<const Tokenizer>> load_sentencepiece_model(std::span<const std::byte> file);

}  // namespace gen::tokenizer
