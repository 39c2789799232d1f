// SPDX-License-Identifier: Apache-2.0
// Tokenizer: text to token ids and back. create_tokenizer builds one from a VocabSpec (vocab.h)
// that may be hostile; the kinds are in *_tokenizer.cpp. Text
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
  kAddBos = 1U << 0,        // begin with BOS, if there is one and the text does not begin with it
  kParseSpecial = 1U << 1,  // names of control tokens become these tokens; otherwise they are plain
                            // text
};

/// Values for what precedes a text, instead of a token.
inline constexpr int32_t kTextStart = -1;  // nothing
inline constexpr int32_t kInText = -2;     // any token of plain text

enum class Special : int32_t { kBos, kEos, kUnk, kSep, kPad, kEot, kEom };

/// A stretch of a text with its own level of trust.
struct TextSegment {
  std::string_view text;
  bool parse_special = false;
};

/// Data that another room derives from a vocabulary and caches with it.
class Derived {
 public:
  virtual ~Derived() = default;
};

/// Slots for such data.
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

  /// Appends the ids of `text`; on failure appends nothing. User-defined tokens are recognised in
  /// any text, control tokens only with kParseSpecial. `previous` is the token before the text. At
  /// the start of a text and after a special token some vocabularies insert a space, which decoding
  /// removes, or strip spaces; elsewhere a text is encoded as it is, so that texts encoded one
  /// after another decode to their concatenation. Some families normalise texts to NFC, and decode
  /// to NFC. Errors: kTokenizer for invalid UTF-8 (naming the byte) and for a character that the
  /// vocabulary cannot express; kInvalidArgument for an unknown flag or more than 1 GiB.
  Status encode(std::string_view text, uint32_t flags, std::vector<int32_t>* out,
                int32_t previous = kTextStart) const;

  /// The same for a text in stretches: tokens may cross the borders between them, but control
  /// tokens are recognised only inside stretches that ask for it. Each stretch contains whole
  /// characters. kAddBos is the only flag.
  virtual Status encode_segments(std::span<const TextSegment> segments, uint32_t flags,
                                 int32_t previous, std::vector<int32_t>* out) const = 0;

  /// Appends the bytes of one token, which need not be whole characters. `previous` is the token
  /// before it or kTextStart: where encoding inserts a space before a text (at its start and after
  /// a special token), that space is not part of the piece. Control tokens have no text unless
  /// `special_as_text`. kOutOfRange for an id outside the vocabulary.
  virtual Status append_piece(int32_t id, int32_t previous, bool special_as_text,
                              std::string* out) const = 0;

  /// Appends the text of `ids`, with U+FFFD for bytes that are not UTF-8. On failure appends
  /// nothing.
  Status decode(std::span<const int32_t> ids, bool special_as_text, std::string* out) const;
  /// The same with all bytes unchanged.
  Status decode_bytes(std::span<const int32_t> ids, bool special_as_text, std::string* out) const;

  [[nodiscard]] virtual int32_t vocab_size() const noexcept = 0;
  /// -1 if the vocabulary has none.
  [[nodiscard]] virtual int32_t special(Special kind) const noexcept = 0;
  /// Whether `id` is a control token; false outside the vocabulary.
  [[nodiscard]] virtual bool is_control(int32_t id) const noexcept = 0;
  /// Ids that end a turn or a text, ascending: eos, eot, eom and control tokens whose texts have
  /// this meaning, such as <|im_end|>. Generation stops at each of them.
  [[nodiscard]] virtual std::span<const int32_t> end_tokens() const noexcept = 0;
  /// The input of the tokenizer: raw token texts, scores, types, whether to add BOS, the chat
  /// template. `types` and `scores` are always complete here.
  [[nodiscard]] virtual const VocabSpec& spec() const noexcept = 0;

  /// The data in a slot of the tokenizer, or null; the second form stores `made` if the slot is
  /// empty, and returns its content. Lock-free, so that a child of fork() can use the tokenizer at
  /// any time.
  [[nodiscard]] std::shared_ptr<const Derived> derived(Kept place) const noexcept;
  std::shared_ptr<const Derived> keep_derived(std::shared_ptr<const Derived> made,
                                              Kept place) const;

 private:
  mutable std::atomic<const std::shared_ptr<const Derived>*> derived_[2] = {};  // owned
};

/// Checks the vocabulary and builds its tokenizer. Errors: kFormat naming the entry, kUnsupported
/// for an unknown pre-tokenizer.
Result<std::shared_ptr<const Tokenizer>> create_tokenizer(VocabSpec spec);

/// A plain SentencePiece `.model` file (unigram or BPE), given as its bytes. kFormat if it is
/// damaged, kUnsupported for another kind of model.
Result<std::shared_ptr<const Tokenizer>> load_sentencepiece_model(std::span<const std::byte> file);

}  // namespace gen::tokenizer
