// SPDX-License-Identifier: Apache-2.0
// TokenGrammar: a grammar over the tokens of one vocabulary, with the masks known so far; shared by
// all matchers of the two.
//
// A mask is the union of the masks of the recogniser's items. What an item allows depends on its
// state, and, only for tokens that go beyond the end of its machine, on where its return list
// leads. So masks are kept in a tree: at its root by state, with the places of the trie where the
// machine may have ended; below, by what those places come to (a frame), and so on as far as tokens
// reach. Of a counter only matters which of the rounds that tokens can take it leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/cancel.h"
#include "base/home_process.h"
#include "base/status.h"
#include "grammar/machine/machines.h"
#include "grammar/mask/mask_maker.h"
#include "grammar/machine/recogniser.h"
#include "grammar/mask/vocabulary.h"

namespace gen::grammar {

/// Threads: any number may use one object; a lock keeps the masks.
class TokenGrammar {
 public:
  /// kGrammar if a token that the grammar names is not in the vocabulary; kCancelled if the flag,
  /// which may be null, is raised.
  static Result<std::shared_ptr<const TokenGrammar>> create(
      std::shared_ptr<const Machines> machines, std::shared_ptr<const Vocabulary> vocabulary,
      const MaskLimits& limits, const CancelFlag* cancel = nullptr);

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
  /// A return to a frame, as far as masks can tell it from others: of the count of a loop, what is
  /// left of LoopMasks.
  struct Way {
    StateId ret = 0;
    uint32_t loop_machine = UINT32_MAX;  // UINT32_MAX: no loop
    uint32_t further = 0;                // the last level that may still be read
    uint32_t first_end = 0;              // the loop may end behind levels from here
    uint32_t behind_ends = 0;            // to before here
    uint32_t members_of = 0;             // a loop of members; then its frame's low and set
    uint32_t low = 0;
    MemberSet set;
    bool operator==(const Way&) const = default;
  };
  /// What may follow where a loop ends, behind each level of it; null: not known yet, or few
  /// places.
  struct LoopEnds {
    uint32_t machine;
    StateId ret;
    std::vector<std::shared_ptr<const StateMask>> level;
  };
  /// What one state, or the return to one frame, allows.
  struct Entry {
    std::shared_ptr<const StateMask> mask;
    std::string key;  // in the vocabulary's pool; empty: not there
    std::vector<std::pair<Way, std::unique_ptr<Entry>>> next;
    std::vector<std::pair<uint32_t, std::shared_ptr<const LoopMasks>>> loops;  // by machine
    std::vector<LoopEnds> ends;
  };
  struct Open {
    Entry* entry;
    ListId list;
    uint64_t missing;  // fewest bytes of the rounds that a loop lacks
  };

  Result<Entry*> entry_of(StateId state) const;
  Result<Entry*> entry_behind(Entry* entry, const Frame& frame, uint64_t* missing) const;
  Result<std::shared_ptr<const LoopMasks>> loop_masks(Entry* entry, uint32_t machine) const;
  [[nodiscard]] bool counts(uint32_t loop) const noexcept;
  Result<Way> way_of(Entry* entry, const Frame& frame, uint64_t* missing) const;
  Status allow_behind_loop(Entry* entry, const Way& way, std::vector<uint32_t>* exits) const;
  Result<const StateMask*> behind_level(Entry* entry, const Way& way, size_t n,
                                        const LoopMasks& masks,
                                        const MaskMaker::Start& start) const;
  Status mask_together(const ReturnLists& lists, std::span<const Item> items,
                       std::span<uint64_t> out) const;
  void allow_named(StateId state) const;
  void allow_term(uint32_t term) const;
  [[nodiscard]] std::string key_of(StateId state) const;
  void count(const Entry& entry) const noexcept;

  const std::shared_ptr<const Machines> machines_;
  const std::shared_ptr<const Vocabulary> vocabulary_;
  const MaskLimits limits_;
  const HomeProcess home_;
  std::vector<std::vector<TokenRange>> terms_;  // their tokens
  // States of the root, if nothing calls it: behind it is the end of all.
  StateId root_begin_ = 0;
  StateId root_end_ = 0;

  mutable std::mutex mutex_;  // of all below
  mutable std::unordered_map<StateId, std::unique_ptr<Entry>> entries_;
  mutable Statistics statistics_;
  mutable std::vector<Open> open_;
  mutable MaskMaker maker_;
};

}  // namespace gen::grammar
