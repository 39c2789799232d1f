// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding by scores, see sentencepiece_encoder.h. A text is split where no merge can
// cross (word_cuts.h); a long text copies the ids of earlier equal words.
#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <unordered_map>

#include "tokenizer/piece_table.h"
#include "tokenizer/sentencepiece_encoder.h"
#include "tokenizer/word_cache.h"
#include "tokenizer/word_cuts.h"

namespace gen::tokenizer {
namespace {

// Smaller is better, as for ranks in a heap. No finite score gives kNone.
constexpr uint32_t kNone = UINT32_MAX;
uint32_t rank_of(float score) noexcept {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0F);  // -0 equals 0
  return (bits >> 31) != 0 ? bits : ~(bits | 0x80000000U);
}

class Bpe final : public SpEncoder {
 public:
  explicit Bpe(const SpPieces& pieces);
  Status encode(std::string_view text, std::vector<int32_t>* out) const override;

 private:
  class Merger;

  SpPieces pieces_;
  PieceTable table_;
  WordCuts cuts_;
};

// The words of one text. An unused piece is split into the two pieces that formed it. These are
// always the same: the merges of a stretch of text do not depend on its context, as long as nothing
// is merged across its ends.
class Bpe::Merger {
 public:
  Merger(const Bpe& owner, std::string_view text, std::vector<int32_t>* out)
      : owner_(owner), text_(text), out_(out), first_(out->size()) {}

  /// Room for `symbols` that are to be pushed.
  void reserve(size_t symbols) { symbols_.reserve(symbols); }
  void push(size_t begin, size_t bytes) {
    const auto index = static_cast<uint32_t>(symbols_.size());
    symbols_.push_back({.hash = PieceTable::hash(text_.substr(begin, bytes)),
                        .begin = static_cast<uint32_t>(begin),
                        .bytes = static_cast<uint32_t>(bytes),
                        .previous = index == 0 ? kEnd : index - 1,
                        .next = index + 1});
  }
  /// Merges the pushed symbols, writes the ids, and clears the symbols.
  Status finish();

 private:
  static constexpr uint32_t kEnd = UINT32_MAX;
  static constexpr size_t kShortWord = 32;

  struct Symbol {
    uint64_t hash;
    uint32_t begin;
    uint32_t bytes;
    uint32_t previous;
    uint32_t next;          // kEnd for the last
    uint32_t rank = kNone;  // of the piece formed by this symbol and the next one
    int32_t joined = -1;    // that piece
    int32_t id = -1;        // -1: not looked up yet
  };

  [[nodiscard]] std::string_view text_of(const Symbol& symbol) const noexcept {
    return text_.substr(symbol.begin, symbol.bytes);
  }
  bool update(uint32_t index);
  void join(uint32_t index);
  void merge_few();
  void merge_many();
  void push_heap(uint32_t index);
  Status write(const Symbol& symbol);
  Status take_apart(const Symbol& symbol, int32_t id);

  const Bpe& owner_;
  std::string_view text_;
  std::vector<int32_t>* out_;
  size_t first_;
  std::vector<Symbol> symbols_;
  std::vector<uint64_t> heap_;  // rank << 32 | symbol; entries that no longer hold are skipped
  std::unordered_map<int32_t, uint32_t> parts_;  // unused piece -> bytes of its left half
};

Status Bpe::Merger::finish() {
  if (symbols_.empty()) return {};
  symbols_.back().next = kEnd;
  symbols_.size() <= kShortWord ? merge_few() : merge_many();
  for (uint32_t i = 0; i != kEnd; i = symbols_[i].next) GEN_TRY(write(symbols_[i]));
  symbols_.clear();
  return {};
}

// Looks up whether the symbol and the next one form a piece.
bool Bpe::Merger::update(uint32_t index) {
  Symbol& symbol = symbols_[index];
  symbol.rank = kNone;
  if (symbol.next == kEnd) return false;
  const Symbol& next = symbols_[symbol.next];
  const size_t bytes = size_t{symbol.bytes} + next.bytes;
  if (bytes > owner_.table_.max_bytes()) return false;
  const uint64_t hash = owner_.table_.join(symbol.hash, next.hash, next.bytes);
  symbol.joined = owner_.table_.find(hash, text_.substr(symbol.begin, bytes));
  if (symbol.joined < 0) return false;
  const VocabSpec& spec = owner_.pieces_.spec;
  const auto id = static_cast<size_t>(symbol.joined);
  symbol.rank = rank_of(spec.scores[id]);
  if (spec.types[id] == TokenType::kUnused) parts_[symbol.joined] = symbol.bytes;
  return true;
}

void Bpe::Merger::join(uint32_t index) {
  Symbol& symbol = symbols_[index];
  Symbol& gone = symbols_[symbol.next];
  symbol.hash = owner_.table_.join(symbol.hash, gone.hash, gone.bytes);
  symbol.bytes += gone.bytes;
  symbol.id = symbol.joined;
  symbol.next = gone.next;
  gone.rank = kNone;
  if (symbol.next != kEnd) symbols_[symbol.next].previous = index;
}

// A word is searched for its best pair each time, which beats the heap up to a few dozen symbols.
void Bpe::Merger::merge_few() {
  for (uint32_t i = 0; i != kEnd; i = symbols_[i].next) update(i);
  for (;;) {
    uint32_t best = 0;
    for (uint32_t i = 0; i != kEnd; i = symbols_[i].next) {
      if (symbols_[i].rank < symbols_[best].rank) best = i;
    }
    if (symbols_[best].rank == kNone) return;
    join(best);
    if (symbols_[best].previous != kEnd) update(symbols_[best].previous);
    update(best);
  }
}

void Bpe::Merger::merge_many() {
  heap_.clear();
  for (uint32_t i = 0; i < symbols_.size(); ++i) {
    if (update(i)) heap_.push_back((uint64_t{symbols_[i].rank} << 32) | i);
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  while (!heap_.empty()) {
    const uint64_t top = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    const auto index = static_cast<uint32_t>(top);
    // An old entry whose rank is right again is equal to the new one.
    if (symbols_[index].rank != static_cast<uint32_t>(top >> 32)) continue;
    join(index);
    if (symbols_[index].previous != kEnd) push_heap(symbols_[index].previous);
    push_heap(index);
  }
}

void Bpe::Merger::push_heap(uint32_t index) {
  if (!update(index)) return;
  heap_.push_back((uint64_t{symbols_[index].rank} << 32) | index);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

Status Bpe::Merger::write(const Symbol& symbol) {
  const int32_t id = symbol.id >= 0 ? symbol.id : owner_.table_.find(symbol.hash, text_of(symbol));
  if (id < 0) return owner_.pieces_.unknown.append(text_of(symbol), first_, out_);
  if (parts_.contains(id)) return take_apart(symbol, id);
  out_->push_back(id);
  return {};
}

Status Bpe::Merger::take_apart(const Symbol& symbol, int32_t id) {
  struct Part {
    std::string_view text;
    int32_t id;
  };
  std::vector<Part> open = {{text_of(symbol), id}};
  while (!open.empty()) {
    const Part part = open.back();
    open.pop_back();
    if (part.id < 0) {
      GEN_TRY(owner_.pieces_.unknown.append(part.text, first_, out_));
      continue;
    }
    const auto parts = parts_.find(part.id);
    if (parts == parts_.end()) {
      out_->push_back(part.id);
      continue;
    }
    // The left half comes first.
    for (const std::string_view text :
         {part.text.substr(parts->second), part.text.substr(0, parts->second)}) {
      open.push_back({text, owner_.table_.find(PieceTable::hash(text), text)});
    }
  }
  return {};
}

size_t count_characters(std::string_view text) noexcept {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

size_t count_pieces(const SpPieces& pieces) noexcept {
  size_t count = 0;
  for (size_t id = 0; id < pieces.spec.tokens.size(); ++id) count += size_t{pieces.holds(id)};
  return count;
}

size_t longest_piece(const SpPieces& pieces) noexcept {
  size_t bytes = 0;
  for (size_t id = 0; id < pieces.spec.tokens.size(); ++id) {
    if (pieces.holds(id)) bytes = std::max(bytes, pieces.spec.tokens[id].size());
  }
  return bytes;
}

Bpe::Bpe(const SpPieces& pieces)
    : pieces_(pieces), table_(pieces.spec.tokens, count_pieces(pieces), longest_piece(pieces)) {
  const VocabSpec& spec = pieces_.spec;
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (!pieces_.holds(id)) continue;
    table_.add(id);
    cuts_.forbid(spec.tokens[id]);
  }
}

Status Bpe::encode(std::string_view text, std::vector<int32_t>* out) const {
  Merger merger(*this, text, out);
  // Words of unknown characters are not copied, because runs of those become one token.
  WordCache cache(pieces_.unknown.by_bytes ? text.size() : 0);
  const auto word = [&](size_t begin, size_t end) -> Status {
    const std::string_view characters = text.substr(begin, end - begin);
    WordCache::Slot* slot = cache.slot_of(characters);
    if (WordCache::copy(slot, characters, out)) return {};
    const size_t first = out->size();
    merger.reserve(count_characters(characters));
    while (begin < end) {
      const size_t bytes = character_bytes(text.substr(begin));
      merger.push(begin, bytes);
      begin += bytes;
    }
    GEN_TRY(merger.finish());
    WordCache::store(slot, characters, first, *out);
    return {};
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    std::optional<SpecialMatch> kept;
    do {
      if (!pieces_.kept_texts.empty()) kept = pieces_.kept_texts.match_at(text, at);
      if (kept) break;
      at += character_bytes(text.substr(at));
    } while (at < text.size() && !cuts_.may_cut(text, at));
    GEN_TRY(word(begin, at));
    if (!kept) continue;
    out->push_back(kept->id);
    at = kept->end;
  }
  return {};
}

}  // namespace

std::unique_ptr<const SpEncoder> make_sp_bpe(const SpPieces& pieces) {
  return std::make_unique<Bpe>(pieces);
}

}  // namespace gen::tokenizer
