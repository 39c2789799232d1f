// SPDX-License-Identifier: Apache-2.0
// Matcher: the position of one text in a grammar, which reads the text token by token or byte by
// byte. An accepted text can always still become a member of the language.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "grammar/base/byte_set.h"
#include "grammar/matcher/item_search.h"
#include "grammar/json/json_text.h"
#include "grammar/machine/recogniser.h"
#include "grammar/mask/token_grammar.h"
#include "grammar/matcher/token_search.h"
#include "tokenizer/tokenizer.h"

namespace gen::grammar {

/// Storage: the items after every accepted piece, and the return lists that they share, in one
/// block that forks share until one of them advances. Threads: one thread at a time per matcher;
/// forks are independent of each other.
class Matcher {
 public:
  /// kGrammar if the start already exceeds the limit on items.
  static Result<Matcher> create(std::shared_ptr<const TokenGrammar> grammar);
  ~Matcher();
  Matcher(Matcher&& other) noexcept;
  Matcher& operator=(Matcher&& other) noexcept;
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  /// True if the text can continue with these bytes, or this token; otherwise nothing has changed.
  /// An end token is part of the text where the grammar asks_for() it; otherwise it is accepted
  /// where is_complete(), and nothing else after it. kGrammar, with nothing changed, if that
  /// exceeds the limit on items; kOutOfRange for an id outside the vocabulary.
  Result<bool> accept_bytes(std::string_view bytes);
  Result<bool> accept_token(int32_t token);

  /// Undoes the last `count` accepting calls: those that returned true, whatever the length of
  /// their pieces. kOutOfRange if there were fewer.
  Status rollback(size_t count);
  [[nodiscard]] size_t accepted() const noexcept { return past_->marks.size() - 1; }
  /// A second matcher in the same place.
  [[nodiscard]] Matcher fork() const;
  void reset();

  /// Whether the text may end here.
  [[nodiscard]] bool is_complete() const noexcept { return now().ended; }
  /// Whether the text must end here: nothing can follow.
  [[nodiscard]] bool is_finished() const noexcept { return now().ended && now().count == 0; }

  /// Whether the grammar allows this token next by its name or id, not only as "any token except".
  [[nodiscard]] bool asks_for(int32_t token) const noexcept;

  /// Sets bit t of `bits`, of vocabulary().words() words, if and only if accept_token(t) would
  /// accept it. kGrammar if that exceeds the limits.
  Status mask(std::span<uint64_t> bits) const;
  /// The same, but only tokens after which the text can end within `n_tokens` - 1 more tokens (not
  /// counting the end token), so that it ends within a budget: returns true. No bit is set where
  /// the text may end and no other token is short enough. If the budget cannot suffice at all, the
  /// mask is that of mask(): returns false. This relies on single-byte tokens: without them, a
  /// position may be reached from which the end takes more tokens.
  Result<bool> mask_within(uint64_t n_tokens, std::span<uint64_t> bits);
  /// The masks after drafted tokens, each of which follows `parents[i]`, a smaller index, or the
  /// current position for -1: `bits` holds one mask per token. After an impossible token the mask
  /// is empty, and so are those below it. kInvalidArgument, kOutOfRange and kGrammar as above; the
  /// matcher does not move.
  Status masks_of_tree(std::span<const int32_t> parents, std::span<const int32_t> tokens,
                       std::span<uint64_t> bits);
  /// The bytes that accept_bytes would accept next.
  [[nodiscard]] ByteSet valid_bytes() const;
  /// The forced bytes, at most `most`: each is the only possible one; none where the text may end,
  /// or where a token without bytes may come.
  Result<std::string> forced_bytes(size_t most);
  /// The forced tokens, at most `most`: each is the only one that the mask allows.
  Result<std::vector<int32_t>> forced_tokens(size_t most);
  /// The forced bytes as the tokenizer would split them after the token `previous` (or kTextStart,
  /// kInText), without the last tokens if later text could change them.
  Result<std::vector<int32_t>> forced_tokens(const tokenizer::Tokenizer& tokenizer,
                                             int32_t previous, size_t max_bytes);
  /// Minimum bytes until the text may end, at most 2^62; a token asked for by name counts as one.
  [[nodiscard]] uint64_t min_bytes() const noexcept;
  /// Minimum tokens until the text may end, not counting the end token. Exact if all shorter token
  /// sequences could be searched within `work` trie nodes (0: no search); otherwise that of the
  /// shortest text. kNoWay if no tokens of the vocabulary are known to complete it.
  FewestTokens min_tokens(uint64_t work = kSearchWork);
  static constexpr uint64_t kSearchWork = uint64_t{1} << 22U;

  [[nodiscard]] const TokenGrammar& grammar() const noexcept { return *grammar_; }
  /// Items visited to accept texts since the object was made, and memory in bytes; for tests of
  /// costs.
  [[nodiscard]] uint64_t work() const noexcept { return step_.work(); }
  [[nodiscard]] size_t memory() const noexcept {
    return past_->lists.memory() + past_->items.capacity() * sizeof(Item) +
           past_->marks.capacity() * sizeof(Mark) + past_->json.memory() +
           past_->places.capacity() * sizeof(JsonState);
  }

 private:
  struct Mark {
    size_t first = 0;  // of its items
    size_t count = 0;
    size_t frames = 0;
    bool ended = false;
    bool closed = false;  // after an end token
  };
  struct Past {
    ReturnLists lists;
    std::vector<Item> items;
    std::vector<Mark> marks;  // [0] is the start
    // For JSON with rules beyond the grammar: its state at every mark; entries after the newest
    // mark belong to a failed call.
    JsonText json;
    std::vector<JsonState> places;
    std::atomic<uint32_t> n_owners = 1;
  };

  Matcher(std::shared_ptr<const TokenGrammar> grammar, std::shared_ptr<Past> past);
  [[nodiscard]] const Mark& now() const noexcept { return past_->marks.back(); }
  [[nodiscard]] std::span<const Item> items() const noexcept {
    return std::span(past_->items).subspan(now().first, now().count);
  }
  [[nodiscard]] Status check_words(size_t words) const;
  void own();
  void disown() noexcept;
  Result<bool> read(std::string_view bytes, bool* ended);
  Status finish_step();
  void push(std::span<const Item> items, bool ended, bool closed);
  /// matcher_json.cpp: for texts with rules beyond the grammar (json_ is not null).
  void read_on_from_here() const { reader_.begin(past_->json, place(), grammar_->machines().json); }
  [[nodiscard]] const JsonState& place() const noexcept {
    return past_->places[past_->marks.size() - 1];
  }
  [[nodiscard]] ByteSet next_bytes(std::span<const Item> items) const;
  void allow_ends(std::span<uint64_t> bits) const noexcept;
  void forbid(std::span<uint64_t> bits) const;
  void forbid_texts(std::span<uint64_t> bits) const;
  void allow_named(std::span<const uint64_t> before, std::span<uint64_t> bits) const;
  void forbid_refused(std::span<const int32_t> tokens, std::span<uint64_t> bits) const;
  void forbid_taken_names(std::span<uint64_t> bits) const;

  std::shared_ptr<const TokenGrammar> grammar_;
  std::shared_ptr<Past> past_;
  const JsonTokens* json_ = nullptr;
  std::unique_ptr<ItemSearch> differ_;  // if items of arrays must differ, or JSON is a section of
                                        // the text
  Step step_;
  mutable JsonReader reader_;
  std::vector<Item> scratch_;  // after the last bytes
  std::vector<Item> named_;    // after the token by name
  // A draft tree: first child and next sibling by row, where row 0 is the current position.
  std::vector<std::array<uint32_t, 2>> tree_;
  std::vector<uint32_t> path_;
};

/// Undoes what a matcher accepts during the lifetime of this object, however its scope is left.
class MatcherTry {
 public:
  explicit MatcherTry(Matcher& matcher) noexcept : matcher_(matcher), before_(matcher.accepted()) {}
  ~MatcherTry() {
    const size_t more = matcher_.accepted() - before_;
    if (more > 0) static_cast<void>(matcher_.rollback(more));  // already private: no allocation
  }
  MatcherTry(const MatcherTry&) = delete;
  MatcherTry& operator=(const MatcherTry&) = delete;

 private:
  Matcher& matcher_;
  size_t before_;
};

}  // namespace gen::grammar
