// SPDX-License-Identifier: Apache-2.0
// Matcher: one text that is to become a member of a grammar's language, read token by token or byte
// by byte. What was accepted can always still become a member.
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
#include "grammar/byte_set.h"
#include "grammar/recogniser.h"
#include "grammar/token_grammar.h"

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
  /// that ends texts is taken where is_complete(), and nothing else behind it. kGrammar, with
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

  /// Sets bit t of `bits`, of vocabulary().words() words, exactly if accept_token(t) would take it.
  /// kGrammar if that takes more than the limits.
  Status mask(std::span<uint64_t> bits) const;
  /// Bytes that accept_bytes would take.
  [[nodiscard]] ByteSet valid_bytes() const noexcept;
  /// Bytes that are the only way on, at most `most` of them; none where the text may end, or where
  /// a token without bytes may come.
  Result<std::string> forced_bytes(size_t most);
  /// Fewest bytes until the text may end, at most 2^62; tokens without bytes count nothing.
  [[nodiscard]] uint64_t min_bytes() const noexcept;

  [[nodiscard]] const TokenGrammar& grammar() const noexcept { return *grammar_; }

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
    std::atomic<uint32_t> n_owners = 1;
  };

  Matcher(std::shared_ptr<const TokenGrammar> grammar, std::shared_ptr<Past> past);
  [[nodiscard]] const Mark& now() const noexcept { return past_->marks.back(); }
  [[nodiscard]] std::span<const Item> items() const noexcept {
    return std::span(past_->items).subspan(now().first, now().count);
  }
  void own();
  void disown() noexcept;
  Result<bool> read(std::string_view bytes, bool* ended);
  Status finish_step();
  void push(std::span<const Item> items, bool ended, bool closed);

  std::shared_ptr<const TokenGrammar> grammar_;
  std::shared_ptr<Past> past_;
  Step step_;
  std::vector<Item> scratch_;  // behind the bytes read last
};

}  // namespace gen::grammar
