// SPDX-License-Identifier: Apache-2.0
// The parts of Tokenizer common to all kinds, and the choice of the kind. See tokenizer.h.
#include "tokenizer/tokenizer.h"

#include <utility>

#include "tokenizer/bpe_tokenizer.h"
#include "tokenizer/plamo2_tokenizer.h"
#include "tokenizer/rwkv_tokenizer.h"
#include "tokenizer/sentencepiece_tokenizer.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/text_bpe_tokenizer.h"
#include "tokenizer/vocab_check.h"
#include "tokenizer/wordpiece_tokenizer.h"

namespace gen::tokenizer {
namespace {

struct KindRow {
  VocabKind kind;
  Result<std::shared_ptr<const Tokenizer>> (*create)(VocabSpec spec);
};
constexpr KindRow kKinds[] = {
    {VocabKind::kSentencePiece, create_sentencepiece_tokenizer},
    {VocabKind::kByteBpe, create_bpe_tokenizer},
    {VocabKind::kTextBpe, create_text_bpe_tokenizer},
    {VocabKind::kUnigram, create_sentencepiece_tokenizer},
    {VocabKind::kWordPiece, create_wordpiece_tokenizer},
    {VocabKind::kRwkv, create_rwkv_tokenizer},
    {VocabKind::kPlamo2, create_plamo2_tokenizer},
    {VocabKind::kHybridDna, create_bpe_tokenizer},
};

}  // namespace

Status Tokenizer::encode(std::string_view text, uint32_t flags, std::vector<int32_t>* out,
                         int32_t previous) const {
  const TextSegment segment{text, (flags & kParseSpecial) != 0};
  return encode_segments({&segment, 1}, flags, previous, out);
}

std::shared_ptr<const Derived> Tokenizer::derived(Kept place) const noexcept {
  const auto& at = derived_[static_cast<size_t>(place)];
  const std::shared_ptr<const Derived>* const kept = at.load(std::memory_order_acquire);
  return kept != nullptr ? *kept : nullptr;
}

std::shared_ptr<const Derived> Tokenizer::keep_derived(std::shared_ptr<const Derived> made,
                                                       Kept place) const {
  auto mine = std::make_unique<const std::shared_ptr<const Derived>>(std::move(made));
  const std::shared_ptr<const Derived>* kept = nullptr;
  auto& at = derived_[static_cast<size_t>(place)];
  if (at.compare_exchange_strong(kept, mine.get(), std::memory_order_acq_rel)) {
    kept = mine.release();
  }
  return *kept;
}

Status Tokenizer::decode(std::span<const int32_t> ids, bool special_as_text,
                         std::string* out) const {
  std::string text;
  StreamDecoder decoder(*this, -1, special_as_text);
  for (const int32_t id : ids) GEN_TRY(decoder.feed(id, &text));
  decoder.flush(&text);
  out->append(text);
  return {};
}

Status Tokenizer::decode_bytes(std::span<const int32_t> ids, bool special_as_text,
                               std::string* out) const {
  std::string bytes;
  int32_t previous = -1;
  for (const int32_t id : ids) {
    GEN_TRY(append_piece(id, previous, special_as_text, &bytes));
    previous = id;
  }
  out->append(bytes);
  return {};
}

Result<std::shared_ptr<const Tokenizer>> create_tokenizer(VocabSpec spec) {
  GEN_TRY(check_and_complete(&spec));
  for (const KindRow& row : kKinds) {
    if (row.kind == spec.kind) return row.create(std::move(spec));
  }
  return error(Code::kInternal, "vocabulary kind %d has no tokenizer", static_cast<int>(spec.kind));
}

}  // namespace gen::tokenizer
