// SPDX-License-Identifier: Apache-2.0
// TokenGrammar: a grammar over the tokens of one vocabulary, with the masks computed so far; shared
// by all matchers of the two.
//
// A mask is the union of the masks of the recogniser's items. The mask of an item depends on its
// state and, only for tokens that extend beyond the end of its machine, on its return list. Masks
// are therefore cached in a tree: at its root by state, with the trie nodes where the machine may
// have ended; below, by the continuations there (a frame), and so on as far as tokens reach. Of a
// counter only the rounds that tokens can reach matter.
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

/// Threads: any number may use one object; a lock guards the masks.
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

  /// Whether the token matches a term.
  [[nodiscard]] bool matches(uint32_t term, int32_t token) const noexcept;

  /// Adds to `out` the tokens that may come next, except those that end a text. kGrammar if that
  /// exceeds the limits. `*worst`, if given: after each of them the text can end within that many
  /// bytes.
  Status mask(const ReturnLists& lists, std::span<const Item> items, std::span<uint64_t> out,
              uint64_t* worst = nullptr) const;
  /// The same, but only tokens after which the text can end within `most` bytes, where a named
  /// token counts as one. `lists` is unchanged afterwards.
  Status mask_within(ReturnLists& lists, std::span<const Item> items, uint64_t most,
                     std::span<uint64_t> out) const;
  /// Any token that matches a term; -1 if there is none.
  [[nodiscard]] int32_t some_token(uint32_t term) const noexcept;

  /// Bytes of cached masks, and the number of computed ones.
  struct Statistics {
    size_t bytes = 0;
    uint64_t made = 0;
  };
  [[nodiscard]] Statistics statistics() const;

  TokenGrammar(std::shared_ptr<const Machines> machines,
               std::shared_ptr<const Vocabulary> vocabulary, const MaskLimits& limits);

 private:
  /// The part of a frame that masks depend on: of the count of a loop, the levels of LoopMasks that
  /// remain.
  struct ReturnKey {
    StateId ret = 0;
    uint32_t loop_machine = UINT32_MAX;  // UINT32_MAX: no loop
    uint32_t further = 0;                // the last level that may still be read
    uint32_t first_end = 0;              // the loop may end after levels from here
    uint32_t behind_ends = 0;            // to before here
    uint32_t members_of = 0;             // a loop of members; identified by its frame's low and set
    uint32_t low = 0;
    MemberSet set;
    bool operator==(const ReturnKey&) const = default;
  };
  /// The masks after the end of a loop, by level; null: not computed yet, or few exits.
  struct LoopEnds {
    uint32_t machine;
    StateId ret;
    std::vector<std::shared_ptr<const StateMask>> level;
  };
  /// The mask of one state, or of the return to one frame.
  struct Entry {
    std::shared_ptr<const StateMask> mask;
    std::string key;  // in the vocabulary's pool; empty: not there
    std::vector<std::pair<ReturnKey, std::unique_ptr<Entry>>> next;
    std::vector<std::pair<uint32_t, std::shared_ptr<const LoopMasks>>> loops;  // by machine
    std::vector<LoopEnds> ends;
  };
  struct Open {
    Entry* entry;
    ListId list;
    uint64_t missing;  // minimum bytes of the missing rounds of a loop
  };

  Result<Entry*> entry_of(StateId state) const;
  Result<Entry*> entry_behind(Entry* entry, const Frame& frame, uint64_t* missing) const;
  Result<std::shared_ptr<const LoopMasks>> loop_masks(Entry* entry, uint32_t machine) const;
  [[nodiscard]] bool counts(uint32_t loop) const noexcept;
  Result<ReturnKey> return_key_of(Entry* entry, const Frame& frame, uint64_t* missing) const;
  Status allow_behind_loop(Entry* entry, const ReturnKey& return_key,
                           std::vector<uint32_t>* exits) const;
  Result<const StateMask*> behind_level(Entry* entry, const ReturnKey& return_key, size_t n,
                                        const LoopMasks& masks,
                                        const MaskMaker::WalkStart& start) const;
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
  std::vector<std::vector<TokenRange>> terms_;  // the tokens of each term
  // States of the root, if nothing calls it: the end of the text follows it.
  StateId root_begin_ = 0;
  StateId root_end_ = 0;

  mutable std::mutex mutex_;  // guards everything below
  mutable std::unordered_map<StateId, std::unique_ptr<Entry>> entries_;
  mutable Statistics statistics_;
  mutable std::vector<Open> open_;
  mutable MaskMaker maker_;
};

}  // namespace gen::grammar
