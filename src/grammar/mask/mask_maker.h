// SPDX-License-Identifier: Apache-2.0
// MaskMaker: finds out which tokens can be read from given items. What it has learnt of a grammar
// serves the next mask: sets of items and what bytes lead them to (set_automaton.h), and the newest
// masks, beside which one of a similar place is found by looking only where the two differ.
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
  size_t cache_bytes = size_t{64} << 20U;  // above it, masks are forgotten and made anew
  size_t items = size_t{1} << 16U;         // of the recogniser at one place
  uint64_t work = uint64_t{1} << 24U;      // items looked at for one mask
  size_t sets = 4096;  // of items, kept to walk over; at most SetAutomaton::kMost
};

/// Threads: not synchronised.
class MaskMaker {
 public:
  /// Lists, and the sets of items over them.
  struct Ground {
    Ground(const Machines& machines, size_t max_sets) : sets(machines, lists, max_sets) {}
    ReturnLists lists{ReturnLists::kManyRecent};
    SetAutomaton sets;
  };
  /// Where walks begin.
  struct Start {
    std::vector<Item> items;
    bool outside = false;  // nothing at all may follow
    std::optional<SetAutomaton::Id> set;
  };

  /// Both outlive it.
  MaskMaker(const Machines& machines, const Vocabulary& vocabulary, const MaskLimits& limits);

  /// To be called before each mask that is asked for: it may be charged for anew.
  void allow_work();
  /// No token is allowed.
  void begin();

  /// The ground below which is the end of all (kEnd) or what is not known (kOutside).
  [[nodiscard]] Ground& shared() noexcept { return shared_; }
  [[nodiscard]] ListId bottom(StateId ret) const noexcept { return ret == kEnd ? end_ : outside_; }
  /// One on top of a matcher's lists, until the next call.
  Ground& over(const ReturnLists& lists);

  /// The step's items become where walks begin. kGrammar if they are too many.
  Status finish_step(Ground& ground, Start* start);
  /// The place behind a return to `state`, with what is not known below.
  Status come_to(StateId state, Start* start);
  /// The same behind a frame that counts nothing.
  Status leave(Frame frame, Start* start);

  /// A state whose mask is known, null if there is none.
  struct Like {
    StateId state = 0;
    std::shared_ptr<const StateMask> mask;
  };
  /// Where most texts lead from a state and stay: from within a word that is not to come, to the
  /// inside of any other. The state itself if there is no such place.
  [[nodiscard]] StateId settled(StateId state) const noexcept;
  /// What is allowed so far, and all texts from a state with nothing called in it, with `list` of
  /// shared() behind it; found beside what `like` allows with the same list.
  Result<std::shared_ptr<const StateMask>> mask_of(StateId state, ListId list, const Like& like);
  /// Allows what can be read from the item, whose list is one of the ground's.
  Status allow_from(Ground& ground, Item item);
  /// Allows what can be read from where the mask's states end.
  Status allow_behind(const StateMask& mask, Ground& ground, const Start& start,
                      std::vector<uint32_t>* exits);
  /// What the body of a loop allows from where it begins, behind each exit of `before`: (*out)[n]
  /// is what is read of it once it has ended n times. False, and `out` means nothing, if a text can
  /// be read as more bodies and as fewer, or that takes too many sets.
  struct Level {
    std::vector<int32_t> tokens;
    std::vector<uint32_t> exits;
    uint64_t worst = 0;
  };
  bool levels(const StateMask& before, const Start& body, std::vector<Level>* out);
  /// A level as the set of tokens allowed.
  void allow_level(const Level& level) {
    begin();
    allowed.add(level.tokens);
    worst = level.worst;
  }
  /// What is allowed now. It may serve to find those of similar places if it was found by
  /// mask_of() alone.
  std::shared_ptr<const StateMask> finish(std::vector<uint32_t> exits);
  void remember(StateId state, ListId list, std::shared_ptr<const StateMask> mask);

  [[nodiscard]] Status too_much() const;

  TrieWalk walk;
  TokenSet allowed;
  uint64_t worst = 0;  // of StateMask
  [[nodiscard]] uint64_t max_work() const noexcept { return max_work_; }

 private:
  using Id = SetAutomaton::Id;
  struct Known {
    Id set;
    std::shared_ptr<const StateMask> mask;
  };
  /// How many bytes long the texts are that two sets are known to agree on, and the shortest on
  /// which they are known to differ.
  struct Agreement {
    uint16_t same = 0;
    uint16_t differ = UINT16_MAX;
  };

  void clear_shared();
  [[nodiscard]] uint64_t whole_bodies(Id body) const;
  Status walk_below(uint32_t top, Ground& ground, const Start& start, std::vector<uint32_t>* exits);
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
  void allow(int32_t token) {  // and those of the same bytes
    for (; token >= 0; token = vocabulary_.twin(token)) allowed.add(token);
  }

  const Vocabulary& vocabulary_;
  const MaskLimits limits_;
  Ground shared_;
  Ground once_;
  bool cleared_ = false;  // not while clearing has failed for lack of memory
  ListId end_ = 0;
  ListId outside_ = 0;
  uint64_t max_work_ = 0;
  std::vector<uint64_t> sorted_;
  size_t comparisons_left_ = 0;
  size_t pairs_left_ = 0;
  bool out_of_work_ = false;  // of a comparison: what was not found the same may still be
  std::vector<Id> path_;
  std::vector<Id> path_beside_;
  std::vector<uint32_t> level_path_;
  std::vector<uint32_t> added_;  // beside a known mask
  std::vector<uint32_t> removed_;
  std::vector<Known> newest_;
  std::unordered_map<uint32_t, Agreement> agreements_;
};

}  // namespace gen::grammar
