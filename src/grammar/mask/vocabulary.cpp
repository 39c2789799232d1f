// SPDX-License-Identifier: Apache-2.0
// Vocabulary, see vocabulary.h.
#include "grammar/mask/vocabulary.h"

#include <algorithm>
#include <utility>

#include "grammar/base/byte_kind.h"

namespace gen::grammar {
namespace {

constexpr size_t kLongestToken = 32U << 10U;

}  // namespace

Result<std::shared_ptr<const Vocabulary>> Vocabulary::create(std::vector<TokenText> tokens,
                                                             std::span<const int32_t> ends) {
  auto made = std::make_shared<Vocabulary>();
  const auto count = static_cast<int32_t>(tokens.size());
  for (const int32_t id : ends) {
    if (id < 0 || id >= count) {
      return error(Code::kOutOfRange, "end token %d outside vocabulary of %d", id, count);
    }
    TokenText& token = tokens[static_cast<size_t>(id)];
    if (token.name.empty()) token.name = token.bytes;
    token.bytes.clear();
  }
  made->ends_.assign(ends.begin(), ends.end());
  std::sort(made->ends_.begin(), made->ends_.end());
  made->begins_.push_back(0);
  for (int32_t id = 0; id < count; ++id) {
    const TokenText& token = tokens[static_cast<size_t>(id)];
    if (token.bytes.size() > kLongestToken) {
      return error(Code::kInvalidArgument, "token %d of %zu bytes is above %zu", id,
                   token.bytes.size(), kLongestToken);
    }
    made->text_ += token.bytes;
    made->begins_.push_back(made->text_.size());
    made->longest_ = std::max(made->longest_, token.bytes.size());
    if (!token.name.empty()) made->names_.try_emplace(token.name, id);
  }
  made->build_trie();
  return std::shared_ptr<const Vocabulary>(std::move(made));
}

Result<std::shared_ptr<const Vocabulary>> Vocabulary::create(
    const tokenizer::Tokenizer& tokenizer) {
  std::vector<TokenText> tokens(static_cast<size_t>(tokenizer.vocab_size()));
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    TokenText& token = tokens[static_cast<size_t>(id)];
    GEN_TRY(tokenizer.append_piece(id, tokenizer::kInText, false, &token.bytes));
    if (token.bytes.empty()) token.name = tokenizer.spec().tokens[static_cast<size_t>(id)];
  }
  return create(std::move(tokens), tokenizer.end_tokens());
}

Result<std::shared_ptr<const Vocabulary>> Vocabulary::of(const tokenizer::Tokenizer& tokenizer) {
  auto kept =
      std::static_pointer_cast<const Vocabulary>(tokenizer.derived(tokenizer::Kept::kVocabulary));
  if (kept != nullptr && kept->home_.here()) return kept;
  GEN_ASSIGN(auto made, create(tokenizer));
  if (kept != nullptr) return made;  // the locks of the other one belong to another process
  return std::static_pointer_cast<const Vocabulary>(
      tokenizer.keep_derived(std::move(made), tokenizer::Kept::kVocabulary));
}

void Vocabulary::build_trie() {
  std::vector<int32_t> order;
  for (int32_t id = 0; id < size(); ++id) {
    if (!bytes(id).empty()) order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return bytes(a) < bytes(b); });
  twins_.assign(begins_.size() - 1, -1);
  trie_.push_back({0, -1, 0, 0, 0, 0});
  std::vector<uint32_t> path = {0};  // nodes of the previous text
  std::string_view before;
  const auto close = [&](size_t depth) {
    for (; path.size() > depth + 1; path.pop_back()) {
      trie_[path.back()].skip = static_cast<uint32_t>(trie_.size());
    }
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string_view text = bytes(order[i]);
    if (text == before) {
      twins_[static_cast<size_t>(order[i - 1])] = order[i];
      continue;
    }
    const auto shared = static_cast<size_t>(
        std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first - text.begin());
    close(shared);
    for (size_t k = shared; k < text.size(); ++k) {
      path.push_back(static_cast<uint32_t>(trie_.size()));
      trie_.push_back({0, -1, static_cast<uint32_t>(i), static_cast<uint16_t>(k + 1),
                       static_cast<uint8_t>(text[k]), 0});
    }
    trie_.back().token = order[i];
    before = text;
  }
  close(0);
  const auto count = static_cast<uint32_t>(trie_.size());
  trie_[0].skip = count;
  kinds_.assign(count, {});
  path.clear();
  for (uint32_t i = count; i-- > 0;) {
    // Nodes below are done: they come later in the order.
    for (uint32_t k = i + 1; k < trie_[i].skip; k = trie_[k].skip) {
      kinds_[i].next |= uint64_t{1} << kByteKinds[trie_[k].byte];
      kinds_[i].below |= kinds_[k].below;
      const int height = std::min(trie_[k].height + 1, int{kMaxHeight});
      trie_[i].height = std::max(trie_[i].height, static_cast<uint8_t>(height));
    }
    kinds_[i].below |= kinds_[i].next;
  }
  in_order_ = std::move(order);
  trie_.push_back({count, -1, static_cast<uint32_t>(in_order_.size()), 0, 0, 0});
}

const JsonTokens& Vocabulary::json_tokens() const {
  const std::lock_guard lock(json_mutex_);
  if (json_tokens_ == nullptr) json_tokens_ = std::make_unique<const JsonTokens>(*this);
  return *json_tokens_;
}

bool Vocabulary::is_end(int32_t id) const noexcept {
  return std::binary_search(ends_.begin(), ends_.end(), id);
}

int32_t Vocabulary::find(std::string_view name) const {
  if (const auto known = names_.find(std::string(name)); known != names_.end()) {
    return known->second;
  }
  uint32_t node = 0;
  for (const char c : name) {
    node = child(node, static_cast<uint8_t>(c));
    if (node == 0) return -1;
  }
  return trie_[node].token;
}

}  // namespace gen::grammar
