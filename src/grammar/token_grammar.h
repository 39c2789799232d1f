// SPDX-License-Identifier: Apache-2.0
// TokenGrammar: a grammar over the tokens of one vocabulary, with the masks known so far; shared by
// all matchers of the two.
//
// A mask is the union of the masks of the recogniser's items. What an item allows depends on its
// state, and, only for tokens that go beyond the end of its machine, on where its return list
// leads. So masks are kept in a tree: at its root by state, with the places of the trie where the
// machine may have ended; below, by what those places come to (a frame), and so on as far as tokens
// reach. A counter matters to a mask only near its ends: elsewhere all counts share one branch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/home_process.h"
#include "base/status.h"
#include "grammar/machines.h"
#include "grammar/recogniser.h"
#include "grammar/trie_walk.h"
#include "grammar/vocabulary.h"

namespace gen::grammar {

struct MaskLimits {
  size_t cache_bytes = size_t{64} << 20U;  // above it, masks are forgotten and made anew
  size_t items = size_t{1} << 16U;         // of the recogniser at one place
  uint64_t work = uint64_t{1} << 24U;      // items looked at for one mask
};

/// Threads: any number may use one object; a lock keeps the masks.
class TokenGrammar {
 public:
  /// kGrammar if a token that the grammar names is not in the vocabulary.
  static Result<std::shared_ptr<const TokenGrammar>> create(
      std::shared_ptr<const Machines> machines, std::shared_ptr<const Vocabulary> vocabulary,
      const MaskLimits& limits);

  [[nodiscard]] const Machines& machines() const noexcept { return *machines_; }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return *vocabulary_; }
  [[nodiscard]] const MaskLimits& limits() const noexcept { return limits_; }
  [[nodiscard]] const HomeProcess& home() const noexcept { return home_; }

  /// Whether the token is what a term asks for.
  [[nodiscard]] bool matches(uint32_t term, int32_t token) const noexcept;

  /// Ors into `out` the tokens that may come next, but for those that end a text.
  /// kGrammar if that takes more than the limits.
  /// `*worst`, if given: behind each of them the text can end within so many bytes, or fewer.
  Status mask(const ReturnLists& lists, std::span<const Item> items, std::span<uint64_t> out,
              uint64_t* worst = nullptr) const;
  /// The same, but only those behind which the text can end within `most` bytes, a named token
  /// counting one. `lists` is as before afterwards.
  Status mask_within(ReturnLists& lists, std::span<const Item> items, uint64_t most,
                     std::span<uint64_t> out) const;
  /// A token that a term asks for; -1 if there is none.
  [[nodiscard]] int32_t some_token(uint32_t term) const noexcept;

  /// Bytes of masks kept, and how often one had to be made.
  struct Statistics {
    size_t bytes = 0;
    uint64_t made = 0;
  };
  [[nodiscard]] Statistics statistics() const;

  TokenGrammar(std::shared_ptr<const Machines> machines,
               std::shared_ptr<const Vocabulary> vocabulary, const MaskLimits& limits);

 private:
  /// What one state, or the return to one frame, allows.
  struct Entry {
    std::shared_ptr<const StateMask> mask;
    std::string key;  // in the vocabulary's pool; empty: not there
    std::vector<std::pair<Frame, std::unique_ptr<Entry>>> next;  // by frame without its parent
    std::vector<std::pair<uint32_t, std::shared_ptr<const LoopMasks>>> loops;  // by machine
  };

  /// What the count of a loop's frame leaves of LoopMasks.
  struct LoopReach {
    size_t further = 0;      // the last level that may still be read
    size_t first_end = 0;    // the loop may end behind levels from here
    size_t behind_ends = 0;  // to before here
    uint64_t missing = 0;    // times until it may end
  };

  Result<Entry*> entry_of(StateId state) const;
  Result<Entry*> entry_behind(Entry* entry, const Frame& frame) const;
  Result<bool> come_to(StateId state) const;
  Result<bool> leave(Frame frame) const;
  [[nodiscard]] bool counts(uint32_t loop) const noexcept;
  Result<std::shared_ptr<const LoopMasks>> loop_masks(Entry* entry, uint32_t machine) const;
  [[nodiscard]] LoopReach reach_of(const Frame& frame, const LoopMasks& masks) const noexcept;
  Status allow_behind_loop(Entry* entry, const Frame& frame, std::vector<uint32_t>* exits) const;
  [[nodiscard]] Frame general(const Frame& frame) const noexcept;
  Status walk(uint32_t top, std::span<const Item> from, std::vector<uint32_t>* exits) const;
  [[nodiscard]] Status too_much() const;
  Status mask_together(const ReturnLists& lists, std::span<const Item> items,
                       std::span<uint64_t> out) const;
  Status walk_from(const StateMask& mask, std::span<const Item> from,
                   std::vector<uint32_t>* exits) const;
  void allow_named(StateId state) const;
  void allow_term(uint32_t term) const;
  void allow_one(int32_t token) const noexcept;
  void allow(int32_t token) const noexcept;  // and those of the same bytes
  std::shared_ptr<const StateMask> finish(std::vector<uint32_t> exits) const;
  void begin_mask() const;
  [[nodiscard]] std::string key_of(StateId state) const;
  void count(const Entry& entry) const noexcept;

  const std::shared_ptr<const Machines> machines_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const MaskLimits limits_;
  const HomeProcess home_;
  std::vector<int32_t> terms_;  // their tokens
  // States of the root, if nothing calls it: behind it is the end of all.
  StateId root_begin_ = 0;
  StateId root_end_ = 0;

  mutable std::mutex mutex_;  // of all below
  mutable std::unordered_map<StateId, std::unique_ptr<Entry>> entries_;
  mutable Statistics statistics_;
  mutable std::vector<std::pair<Entry*, ListId>> open_;
  mutable std::vector<Item> from_;
  // For one mask:
  mutable TrieWalk walk_;
  mutable ReturnLists lists_;
  mutable std::vector<uint64_t> allowed_;
  mutable uint64_t worst_ = 0;
  mutable uint64_t most_work_ = 0;
};

}  // namespace gen::grammar
