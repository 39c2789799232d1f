// SPDX-License-Identifier: Apache-2.0
// MaskMaker: computes which tokens can be read from given items. Results are reused for later
// masks: sets of items and their transitions on bytes (set_automaton.h), and the newest masks, from
// which a similar one is derived by examining only where the two differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "grammar/machine/machines.h"
#include "grammar/mask/mask_pool.h"
#include "grammar/machine/recogniser.h"
#include "grammar/mask/set_automaton.h"
#include "grammar/mask/token_set.h"
#include "grammar/mask/trie_walk.h"
#include "grammar/mask/vocabulary.h"

namespace gen::grammar {

struct MaskLimits {
  size_t cache_bytes = size_t{64} << 20U;  // above it, cached masks are dropped and computed again
  size_t items = size_t{1} << 16U;         // of the recogniser at one position
  uint64_t work = uint64_t{1} << 24U;      // items visited per mask
  size_t sets = 4096;  // sets of items that are stored for walks; at most SetAutomaton::kMost
};

/// Threads: not synchronised.
class MaskMaker {
 public:
  /// Return lists, and the sets of items over them.
  struct StackContext {
    StackContext(const Machines& machines, size_t max_sets) : sets(machines, lists, max_sets) {}
    ReturnLists lists{ReturnLists::kManyRecent};
    SetAutomaton sets;
  };
  /// The start of a walk.
  struct WalkStart {
    std::vector<Item> items;
    bool outside = false;  // anything may follow here
    std::optional<SetAutomaton::Id> set;
  };

  /// Both outlive it.
  MaskMaker(const Machines& machines, const Vocabulary& vocabulary, const MaskLimits& limits);

  /// Call it before each mask: it resets the work limit.
  void allow_work();
  /// Resets the mask: no token is allowed.
  void begin();

  /// The shared lists, whose bottom is the end of the text (kEnd) or an unknown continuation
  /// (kOutside).
  [[nodiscard]] StackContext& shared() noexcept { return shared_; }
  [[nodiscard]] ListId bottom(StateId ret) const noexcept { return ret == kEnd ? end_ : outside_; }
  /// Lists on top of a matcher's lists, valid until the next call.
  StackContext& over(const ReturnLists& lists);

  /// Makes the step's items the start of a walk. kGrammar if there are too many.
  Status finish_step(StackContext& context, WalkStart* start);
  /// The start after a return to `state`, with an unknown continuation below it.
  Status come_to(StateId state, WalkStart* start);
  /// The same after a frame that counts nothing.
  Status leave(Frame frame, WalkStart* start);

  /// A state whose mask is known, null if there is none.
  struct BaseMask {
    StateId state = 0;
    std::shared_ptr<const StateMask> mask;
  };
  /// The state in which most texts from `state` stay: for a state within an excluded word, the
  /// inside of any other word. The state itself if there is none.
  [[nodiscard]] StateId settled(StateId state) const noexcept;
  /// The current mask together with all texts from a state without pending calls in it, with `list`
  /// of shared() as its continuation; derived from the mask of `base` with the same list.
  Result<std::shared_ptr<const StateMask>> mask_of(StateId state, ListId list,
                                                   const BaseMask& base);
  /// Allows the tokens that can be read from the item, whose list is one of the context's.
  Status allow_from(StackContext& context, Item item);
  /// Allows the tokens that can be read from the exits of the mask.
  Status allow_behind(const StateMask& mask, StackContext& context, const WalkStart& start,
                      std::vector<uint32_t>* exits);
  /// The tokens that the body of a loop allows from its start, after each exit of `before`:
  /// (*out)[n] is what is read of it after n completed rounds. False, with `out` meaningless, if a
  /// text can be read as different numbers of rounds, or if there are too many sets.
  struct Level {
    std::vector<int32_t> tokens;
    std::vector<uint32_t> exits;
    uint64_t worst = 0;
  };
  bool levels(const StateMask& before, const WalkStart& body, std::vector<Level>* out);
  /// Adds the tokens of a level.
  void allow_level(const Level& level) {
    begin();
    allowed.add(level.tokens);
    worst = level.worst;
  }
  /// The current mask. It can serve as the base of similar masks if mask_of() alone computed it.
  std::shared_ptr<const StateMask> finish(std::vector<uint32_t> exits);
  void remember(StateId state, ListId list, std::shared_ptr<const StateMask> mask);

  [[nodiscard]] Status too_much() const;

  TrieWalk walk;
  TokenSet allowed;
  uint64_t worst = 0;  // see StateMask
  [[nodiscard]] uint64_t max_work() const noexcept { return max_work_; }

 private:
  using Id = SetAutomaton::Id;
  struct Known {
    Id set;
    std::shared_ptr<const StateMask> mask;
  };
  /// The length of texts on which two sets are known to agree, and the shortest length on which
  /// they are known to differ.
  struct Agreement {
    uint16_t same = 0;
    uint16_t differ = UINT16_MAX;
  };

  void clear_shared();
  [[nodiscard]] uint64_t whole_bodies(Id body) const;
  Status walk_below(uint32_t top, StackContext& context, const WalkStart& start,
                    std::vector<uint32_t>* exits);
  bool walk_sets(uint32_t top, SetAutomaton& sets, Id from, std::vector<uint32_t>* exits);
  bool all_read_below(uint32_t place, SetAutomaton& sets, Id set);
  const Known* similar_to(Id set);
  std::shared_ptr<StateMask> mask_beside(const Known& known, Id from);
  bool walk_beside(const Known& known, Id from, std::vector<uint32_t>* exits);
  void list_marks(StateMask* mask) const;
  bool agree(Id a, Id b, uint32_t height);
  void sort_places(std::vector<uint32_t>* places);
  bool expand_cheaply(Id id);
  bool agree_further(Id a, Id b, uint32_t height);
  [[nodiscard]] bool expand(SetAutomaton& sets, Id id) {
    return sets.expand(walk.step, id, limits_.items, max_work_);
  }
  void allow(int32_t token) {  // and tokens with the same bytes
    for (; token >= 0; token = vocabulary_.twin(token)) allowed.add(token);
  }

  const Vocabulary& vocabulary_;
  const MaskLimits limits_;
  StackContext shared_;
  StackContext once_;
  bool cleared_ = false;  // false after clearing has failed for lack of memory
  ListId end_ = 0;
  ListId outside_ = 0;
  uint64_t max_work_ = 0;
  std::vector<uint64_t> sorted_;
  size_t comparisons_left_ = 0;
  size_t pairs_left_ = 0;
  bool out_of_work_ = false;  // in a comparison: sets not found equal may still be equal
  std::vector<Id> path_;
  std::vector<Id> path_beside_;
  std::vector<uint32_t> level_path_;
  std::vector<uint32_t> added_;  // in addition to a known mask
  std::vector<uint32_t> removed_;
  std::vector<Known> newest_;
  std::unordered_map<uint32_t, Agreement> agreements_;
};

}  // namespace gen::grammar
