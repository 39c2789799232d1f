// SPDX-License-Identifier: Apache-2.0
// The best path through a text, see sentencepiece_encoder.h: for each position, from the front on,
// the best sum of scores of pieces that end there. Sums are rounded and compared as in the library
// that defines these models, so that near ties are decided alike.
#include <algorithm>
#include <cfloat>

#include "tokenizer/piece_trie.h"
#include "tokenizer/sentencepiece_encoder.h"

namespace gen::tokenizer {
namespace {

constexpr float kUnknownPenalty = 10;

class Unigram final : public SpEncoder {
 public:
  explicit Unigram(const SpPieces& pieces);
  Status encode(std::string_view text, std::vector<int32_t>* out) const override;

 private:
  static constexpr uint32_t kNoPath = UINT32_MAX;
  struct BestPath {
    uint32_t from = kNoPath;  // where the last piece of the best path to this position begins
    int32_t piece = -1;       // -1: unknown
    float score = 0;          // of the path
  };

  // The sum is a double if a kept token is involved, as in `score`.
  static void offer(double score, uint32_t from, int32_t piece, BestPath* path) noexcept {
    if (path->from != kNoPath && !(score > double{path->score})) return;
    *path = {from, piece, static_cast<float>(score)};
  }
  [[nodiscard]] double score_of(int32_t piece, size_t bytes) const noexcept;

  SpPieces pieces_;
  PieceTrie trie_;
  float best_ = FLT_MIN;     // of a normal piece; the library starts with this, the least above 0
  float unknown_ = FLT_MAX;  // score of a character that is not a piece
};

std::vector<TriePiece> trie_pieces(const SpPieces& pieces) {
  std::vector<TriePiece> all;
  for (size_t id = 0; id < pieces.spec.tokens.size(); ++id) {
    if (pieces.holds(id)) all.push_back({pieces.spec.tokens[id], static_cast<int32_t>(id)});
  }
  for (const KeptToken& kept : pieces.kept) all.push_back({kept.text, kept.id});
  return all;
}

Unigram::Unigram(const SpPieces& pieces) : pieces_(pieces), trie_(trie_pieces(pieces)) {
  const VocabSpec& spec = pieces_.spec;
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.types[id] != TokenType::kNormal) continue;
    best_ = std::max(best_, spec.scores[id]);
    unknown_ = std::min(unknown_, spec.scores[id]);
  }
  unknown_ -= kUnknownPenalty;
}

double Unigram::score_of(int32_t piece, size_t bytes) const noexcept {
  const auto id = static_cast<size_t>(piece);
  if (pieces_.spec.types[id] != TokenType::kUserDefined) return double{pieces_.spec.scores[id]};
  return double{static_cast<float>(bytes) * best_} - 0.1;  // so good that it is always chosen
}

Status Unigram::encode(std::string_view text, std::vector<int32_t>* out) const {
  if (text.empty()) return {};
  const size_t first = out->size();
  std::vector<BestPath> paths(text.size() + 1);
  for (size_t begin = 0; begin < text.size();) {
    const float here = paths[begin].score;
    const auto from = static_cast<uint32_t>(begin);
    const size_t character = character_bytes(text.substr(begin));
    bool is_piece = false;
    uint32_t node = PieceTrie::kRoot;
    for (size_t end = begin; end < text.size();) {
      node = trie_.step(node, text[end]);
      if (node == PieceTrie::kNowhere) break;
      ++end;
      const int32_t piece = trie_.piece(node);
      if (piece < 0 || pieces_.spec.types[static_cast<size_t>(piece)] == TokenType::kUnused) {
        continue;
      }
      offer(score_of(piece, end - begin) + double{here}, from, piece, &paths[end]);
      is_piece = is_piece || end - begin == character;
    }
    if (!is_piece) offer(double{unknown_ + here}, from, -1, &paths[begin + character]);
    begin += character;
  }
  // The path is followed back from the end, then reversed.
  std::vector<uint32_t> ends;
  for (auto end = static_cast<uint32_t>(text.size()); end > 0; end = paths[end].from) {
    ends.push_back(end);
  }
  while (!ends.empty()) {
    const uint32_t end = ends.back();
    ends.pop_back();
    const BestPath& path = paths[end];
    if (path.piece >= 0) {
      out->push_back(path.piece);
      continue;
    }
    GEN_TRY(pieces_.unknown.append(text.substr(path.from, end - path.from), first, out));
  }
  return {};
}

}  // namespace

std::unique_ptr<const SpEncoder> make_sp_unigram(const SpPieces& pieces) {
  return std::make_unique<Unigram>(pieces);
}

}  // namespace gen::tokenizer
