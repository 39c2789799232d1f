// SPDX-License-Identifier: Apache-2.0
// Vocabulary: the bytes of a vocabulary's tokens, as a list and as a trie. One object for all
// grammars and matchers of a tokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/home_process.h"
#include "base/status.h"
#include "grammar/mask/json_tokens.h"
#include "grammar/mask/mask_pool.h"
#include "tokenizer/tokenizer.h"

namespace gen::grammar {

/// One token: its bytes in a text. Empty: it adds nothing to a text, and grammars refer to it by id
/// or name.
struct TokenText {
  std::string bytes;
  std::string name;  // of a token without bytes
};

/// Threads: immutable; any number of threads may use one object.
class Vocabulary final : public tokenizer::Derived {
 public:
  /// A trie node, in the order of texts: children directly follow their parent.
  struct Node {
    uint32_t skip;  // the first node that is not below this one
    int32_t token;  // the token that ends here, -1 if none does
    uint32_t
        first;  // in in_order(): of tokens here and below, which end where those of `skip` begin
    uint16_t depth;  // bytes from the root, which is node 0
    uint8_t byte;
    uint8_t height;  // bytes of the longest path below, at most kMaxHeight
  };
  static constexpr uint8_t kMaxHeight = 255;

  /// `ends` are ids that end a text; they have no bytes. kOutOfRange for an id outside,
  /// kInvalidArgument for a token of more than 32 KiB.
  static Result<std::shared_ptr<const Vocabulary>> create(std::vector<TokenText> tokens,
                                                          std::span<const int32_t> ends);
  /// The vocabulary of a tokenizer, cached with it: all users share its results. In a child of
  /// fork() a new one, if the parent had one.
  static Result<std::shared_ptr<const Vocabulary>> of(const tokenizer::Tokenizer& tokenizer);
  /// A new one, of the tokens of a tokenizer as they continue a text.
  static Result<std::shared_ptr<const Vocabulary>> create(const tokenizer::Tokenizer& tokenizer);

  [[nodiscard]] int32_t size() const noexcept { return static_cast<int32_t>(begins_.size()) - 1; }
  /// Number of 64-bit words of a mask.
  [[nodiscard]] size_t words() const noexcept { return (begins_.size() + 62) / 64; }
  [[nodiscard]] std::string_view bytes(int32_t id) const noexcept {
    const auto at = static_cast<size_t>(id);
    return std::string_view(text_).substr(begins_[at], begins_[at + 1] - begins_[at]);
  }
  [[nodiscard]] std::span<const Node> trie() const noexcept {
    return std::span(trie_).first(trie_.size() - 1);
  }
  /// Tokens with bytes in the order of the trie.
  [[nodiscard]] std::span<const int32_t> in_order() const noexcept { return in_order_; }
  /// The tokens at a node and below.
  [[nodiscard]] std::span<const int32_t> tokens_from(uint32_t node) const noexcept {
    const uint32_t begin = trie_[node].first;
    return in_order().subspan(begin, trie_[trie_[node].skip].first - begin);
  }
  /// The kinds of bytes (byte_kind.h) on the paths below a node, and of its next bytes.
  [[nodiscard]] uint64_t kinds_below(uint32_t node) const noexcept { return kinds_[node].below; }
  [[nodiscard]] uint64_t kinds_next(uint32_t node) const noexcept { return kinds_[node].next; }
  /// The node after one more byte, 0 if no token continues so.
  [[nodiscard]] uint32_t child(uint32_t node, uint8_t byte) const noexcept {
    for (uint32_t i = node + 1; i < trie_[node].skip; i = trie_[i].skip) {
      if (trie_[i].byte == byte) return i;
    }
    return 0;
  }
  /// Another token with the same bytes, -1 after the last.
  [[nodiscard]] int32_t twin(int32_t id) const noexcept { return twins_[static_cast<size_t>(id)]; }
  [[nodiscard]] std::span<const int32_t> ends() const noexcept { return ends_; }
  [[nodiscard]] bool is_end(int32_t id) const noexcept;
  [[nodiscard]] size_t longest() const noexcept { return longest_; }
  /// Masks that grammars over this vocabulary share.
  [[nodiscard]] MaskPool& pool() const noexcept { return pool_; }
  /// Made on first use.
  [[nodiscard]] const JsonTokens& json_tokens() const;
  /// The token of this name, or of these bytes; -1 if there is none.
  [[nodiscard]] int32_t find(std::string_view name) const;

 private:
  struct Kinds {
    uint64_t below = 0;
    uint64_t next = 0;
  };
  void build_trie();

  std::string text_;
  std::vector<size_t> begins_;
  std::vector<Node> trie_;  // and a sentinel
  std::vector<int32_t> in_order_;
  std::vector<Kinds> kinds_;  // by node
  std::vector<int32_t> twins_;
  std::vector<int32_t> ends_;
  std::unordered_map<std::string, int32_t> names_;
  size_t longest_ = 0;
  mutable MaskPool pool_;
  mutable std::mutex json_mutex_;
  mutable std::unique_ptr<const JsonTokens> json_tokens_;
  HomeProcess home_;
};

}  // namespace gen::grammar
