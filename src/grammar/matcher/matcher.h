// SPDX-License-Identifier: Apache-2.0
// Matcher: one text that is to become a member of a grammar's language, read token by token or byte
// by byte. What was accepted can always still become a member.
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

/// Storage: the items behind every accepted piece, and return lists they share, in one block that
/// forks share until one of them goes on.
/// Threads: one thread at a time for a matcher; forks are independent of each other.
class Matcher {
 public:
  /// kGrammar if already the start takes more items than the limit.
  static Result<Matcher> create(std::shared_ptr<const TokenGrammar> grammar);
  ~Matcher();
  Matcher(Matcher&& other) noexcept;
  Matcher& operator=(Matcher&& other) noexcept;
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  /// True if the text goes on with these bytes, or this token; else nothing has changed. A token
  /// that ends texts is a part of this one where the grammar asks_for() it; else it is taken where
  /// is_complete(), and nothing else behind it. kGrammar, with
  /// nothing changed, if that takes more items than the limit; kOutOfRange for an id outside.
  Result<bool> accept_bytes(std::string_view bytes);
  Result<bool> accept_token(int32_t token);

  /// Takes back the last `count` accepted pieces: calls that returned true, of whatever length.
  /// kOutOfRange if there are fewer.
  Status rollback(size_t count);
  [[nodiscard]] size_t accepted() const noexcept { return past_->marks.size() - 1; }
  /// Another matcher in the same place.
  [[nodiscard]] Matcher fork() const;
  void reset();

  /// Whether the text may end here.
  [[nodiscard]] bool is_complete() const noexcept { return now().ended; }
  /// Whether it must: nothing can follow.
  [[nodiscard]] bool is_finished() const noexcept { return now().ended && now().count == 0; }

  /// The grammar has this token next by its name or id, not as one of any but some.
  [[nodiscard]] bool asks_for(int32_t token) const noexcept;

  /// Sets bit t of `bits`, of vocabulary().words() words, exactly if accept_token(t) would take it.
  /// kGrammar if that takes more than the limits.
  Status mask(std::span<uint64_t> bits) const;
  /// The same, but only of tokens behind which the text can end in `n_tokens` - 1 more, so that it
  /// ends before a budget runs out (the end token itself not counted): true. No bit where the text
  /// may end and nothing else is short enough. Where not even that many can be enough, the mask is
  /// that of mask(): false. It relies on tokens of single bytes: a vocabulary without them may
  /// leave a place from which the end is farther.
  Result<bool> mask_within(uint64_t n_tokens, std::span<uint64_t> bits);
  /// The masks behind drafted tokens, each behind `parents[i]`, a smaller index, or where the
  /// matcher stands for -1: `bits` has a mask for each in turn. Behind a token that cannot come
  /// the mask is empty, and so are those below it. kInvalidArgument, kOutOfRange and kGrammar as
  /// above; the matcher stays where it is.
  Status masks_of_tree(std::span<const int32_t> parents, std::span<const int32_t> tokens,
                       std::span<uint64_t> bits);
  /// Bytes that accept_bytes would take.
  [[nodiscard]] ByteSet valid_bytes() const;
  /// Bytes that are the only way on, at most `most` of them; none where the text may end, or where
  /// a token without bytes may come.
  Result<std::string> forced_bytes(size_t most);
  /// Tokens that are each the only one that the mask allows, at most `most`.
  Result<std::vector<int32_t>> forced_tokens(size_t most);
  /// The forced bytes as the tokenizer would write them behind the token `previous` (or kTextStart,
  /// kInText): without the last ones where what comes later may make other tokens of them.
  Result<std::vector<int32_t>> forced_tokens(const tokenizer::Tokenizer& tokenizer,
                                             int32_t previous, size_t max_bytes);
  /// Fewest bytes until the text may end, at most 2^62; a token asked for by name counts one.
  [[nodiscard]] uint64_t min_bytes() const noexcept;
  /// Fewest tokens until the text may end, the end token not counted. Exact where the ways of fewer
  /// tokens could be looked through within `work` places of the vocabulary's trie (0: none are);
  /// else of the shortest text. kNoWay if no tokens of the vocabulary are known to spell an end.
  FewestTokens min_tokens(uint64_t work = kSearchWork);
  static constexpr uint64_t kSearchWork = uint64_t{1} << 22U;

  [[nodiscard]] const TokenGrammar& grammar() const noexcept { return *grammar_; }
  /// Items looked at to accept texts since the object was made, and bytes that it keeps; for tests
  /// of what texts cost.
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
    bool closed = false;  // behind an end token
  };
  struct Past {
    ReturnLists lists;
    std::vector<Item> items;
    std::vector<Mark> marks;  // [0] is the start
    // Where the text is JSON that follows more than the grammar: its place at every mark, and
    // what may be behind the newest is of a call that failed.
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
  /// matcher_json.cpp: of texts that follow more than the grammar (json_ is not null).
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
  std::unique_ptr<ItemSearch> differ_;  // if items of arrays must differ, or JSON is a part
  Step step_;
  mutable JsonReader reader_;
  std::vector<Item> scratch_;  // behind the bytes read last
  std::vector<Item> named_;    // behind the token by name
  // Of a draft tree: first child and next sibling by row, row 0 being where the matcher stands.
  std::vector<std::array<uint32_t, 2>> tree_;
  std::vector<uint32_t> path_;
};

/// Takes back what a matcher accepts while this lives, however its scope is left.
class MatcherTry {
 public:
  explicit MatcherTry(Matcher& matcher) noexcept : matcher_(matcher), before_(matcher.accepted()) {}
  ~MatcherTry() {
    const size_t more = matcher_.accepted() - before_;
    if (more > 0) static_cast<void>(matcher_.rollback(more));  // its own already: no allocation
  }
  MatcherTry(const MatcherTry&) = delete;
  MatcherTry& operator=(const MatcherTry&) = delete;

 private:
  Matcher& matcher_;
  size_t before_;
};

}  // namespace gen::grammar
