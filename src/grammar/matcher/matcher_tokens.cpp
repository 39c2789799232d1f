// SPDX-License-Identifier: Apache-2.0
// Lookahead over several tokens, see matcher.h: budgets, draft trees, forced tokens.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/utf8.h"
#include "grammar/matcher/matcher.h"

namespace gen::grammar {
namespace {

constexpr uint64_t kMaxBytesAhead = uint64_t{1} << 17U;

bool none(std::span<const uint64_t> bits) {
  return std::all_of(bits.begin(), bits.end(), [](uint64_t word) { return word == 0; });
}

}  // namespace

FewestTokens Matcher::min_tokens(uint64_t work) {
  if (now().ended) return {0, true, -1};
  own();
  const FewestTokens known = shortest_text(*grammar_, past_->lists, items(), kMaxBytesAhead);
  if (work == 0) return known;
  return fewest_tokens(*grammar_, past_->lists, items(), known, work);
}

Result<bool> Matcher::mask_within(uint64_t n_tokens, std::span<uint64_t> bits) {
  if (now().closed || (now().ended && now().count == 0)) {
    GEN_TRY(mask(bits));
    return true;
  }
  GEN_TRY(check_words(bits.size()));
  own();
  std::fill(bits.begin(), bits.end(), 0);
  if (n_tokens > 0) {
    GEN_TRY(grammar_->mask_within(past_->lists, items(), n_tokens - 1, bits));
    if (json_ != nullptr) forbid(bits);
  }
  if (now().ended) {
    allow_ends(bits);
    return true;
  }
  if (!none(bits)) return true;
  // Single bytes are too many, but longer tokens may still suffice.
  FewestTokens known = min_tokens(0);
  if (known.tokens > n_tokens) known = min_tokens(std::min(grammar_->limits().work, kSearchWork));
  if (known.tokens > n_tokens) {
    GEN_TRY(mask(bits));
    return false;
  }
  if (n_tokens > 0 && !add_fitting_tokens(*grammar_, past_->lists, items(), n_tokens - 1, bits)) {
    std::fill(bits.begin(), bits.end(), 0);
  }
  bits[static_cast<size_t>(known.first) / 64] |= uint64_t{1} << (known.first % 64);
  if (json_ != nullptr) forbid(bits);
  if (!none(bits)) return true;
  GEN_TRY(mask(bits));
  return false;
}

Status Matcher::masks_of_tree(std::span<const int32_t> parents, std::span<const int32_t> tokens,
                              std::span<uint64_t> bits) {
  const size_t words = grammar_->vocabulary().words();
  const size_t count = tokens.size();
  if (parents.size() != count || bits.size() != count * words) {
    return error(Code::kInvalidArgument,
                 "tree of %zu tokens with %zu parents and %zu words, not %zu", count,
                 parents.size(), bits.size(), count * words);
  }
  constexpr uint32_t kNoWord = UINT32_MAX;
  tree_.assign(count + 1, {kNoWord, kNoWord});
  for (size_t i = count; i-- > 0;) {
    if (parents[i] < -1 || parents[i] >= static_cast<int32_t>(i)) {
      return error(Code::kInvalidArgument, "parent %d of token %zu is not before it", parents[i],
                   i);
    }
    if (tokens[i] < 0 || tokens[i] >= grammar_->vocabulary().size()) {
      return error(Code::kOutOfRange, "token %d outside vocabulary of %d", tokens[i],
                   grammar_->vocabulary().size());
    }
    auto& parent = tree_[static_cast<size_t>(parents[i] + 1)];
    tree_[i + 1][1] = std::exchange(parent[0], static_cast<uint32_t>(i + 1));
  }
  std::fill(bits.begin(), bits.end(), 0);
  const size_t here = accepted();
  const auto visit = [&](uint32_t row) -> Result<bool> {
    GEN_ASSIGN(const bool taken, accept_token(tokens[row - 1]));
    if (taken) GEN_TRY(mask(bits.subspan((row - 1) * words, words)));
    return taken;
  };
  path_.assign(1, tree_[0][0]);  // the next row to visit, at each depth
  while (!path_.empty()) {
    const uint32_t row = path_.back();
    if (row == kNoWord) {
      path_.pop_back();
      if (!path_.empty()) GEN_TRY(rollback(1));
      continue;
    }
    path_.back() = tree_[row][1];
    const Result<bool> taken = visit(row);
    if (!taken.ok()) {
      GEN_TRY(rollback(accepted() - here));
      return taken.status();
    }
    if (taken.value()) path_.push_back(tree_[row][0]);
  }
  return {};
}

Result<std::vector<int32_t>> Matcher::forced_tokens(size_t most) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  std::vector<int32_t> forced;
  std::vector<uint64_t> bits(vocabulary.words());
  const MatcherTry trial(*this);
  while (forced.size() < most && !now().ended) {
    GEN_TRY(mask(bits));
    int32_t only = -1;
    int count = 0;
    for (size_t word = 0; word < bits.size(); ++word) {
      count += std::popcount(bits[word]);
      if (bits[word] != 0) only = static_cast<int32_t>(word * 64) + std::countr_zero(bits[word]);
    }
    if (count != 1) break;
    GEN_ASSIGN(const bool taken, accept_token(only));
    if (!taken) break;
    forced.push_back(only);
  }
  return forced;
}

Result<std::vector<int32_t>> Matcher::forced_tokens(const tokenizer::Tokenizer& tokenizer,
                                                    int32_t previous, size_t max_bytes) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (tokenizer.vocab_size() != vocabulary.size()) {
    return error(Code::kInvalidArgument, "tokenizer of %d tokens, the grammar's vocabulary has %d",
                 tokenizer.vocab_size(), vocabulary.size());
  }
  GEN_ASSIGN(std::string bytes, forced_bytes(max_bytes));
  // An incomplete character cannot be encoded yet.
  bytes.resize(utf8_complete_prefix(bytes));
  std::vector<int32_t> tokens;
  if (bytes.empty() || !utf8_valid(bytes)) return tokens;
  GEN_TRY(tokenizer.encode(bytes, 0, &tokens, previous));
  size_t taken = 0;
  size_t read = 0;
  while (taken < tokens.size()) {
    const std::string_view piece = vocabulary.bytes(tokens[taken]);
    if (piece.empty() || std::string_view(bytes).substr(read, piece.size()) != piece) break;
    read += piece.size();
    ++taken;
  }
  tokens.resize(taken);
  // Later text may merge with the last tokens: drops those from which on a longer token begins.
  const MatcherTry trial(*this);
  GEN_ASSIGN(const bool alive, accept_bytes(std::string_view(bytes).substr(0, read)));
  if (alive && is_finished()) return tokens;
  size_t kept = tokens.size();
  size_t begin = read;
  for (size_t i = tokens.size(); i-- > 0;) {
    begin -= vocabulary.bytes(tokens[i]).size();
    uint32_t node = 0;
    bool spelt = true;
    for (size_t k = begin; k < read && spelt; ++k) {
      node = vocabulary.child(node, static_cast<uint8_t>(bytes[k]));
      spelt = node != 0;
    }
    if (spelt && vocabulary.trie()[node].skip > node + 1) kept = i;
  }
  tokens.resize(kept);
  return tokens;
}

}  // namespace gen::grammar
