// SPDX-License-Identifier: Apache-2.0
// Masks from items, see mask_maker.h.
#include "grammar/mask/mask_maker.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

namespace gen::grammar {
namespace {

// With more exits, those before a mark are listed separately: marks usually follow words.
constexpr size_t kManyExits = 64;
constexpr uint64_t kMarks = ~((uint64_t{1} << kFirstMark) - 1);
constexpr size_t kManySorted = 2048;
constexpr size_t kMaxFrames = size_t{1} << 18U;
constexpr size_t kMaxKnown = 8;
constexpr size_t kMaxAgreements = size_t{1} << 16U;
// Sets are compared over texts of at most this many bytes, and a little beyond what is needed.
constexpr uint32_t kMaxCompared = 48;
constexpr uint32_t kFurther = 12;
// Limits per mask: expensive sets that are expanded only for a comparison, and compared pairs.
constexpr size_t kComparisons = 64;
constexpr size_t kMaxPairs = 256;
// Masks that differ in more tokens are not derived from each other.
constexpr size_t kMaxDifferent = 4 * StateMask::kMaxRemoved;
// Maximum bytes to a stable state, and of the state in which most texts stay.
constexpr int kMaxSteps = 2;
constexpr uint32_t kManyBytes = 48;

}  // namespace

MaskMaker::MaskMaker(const Machines& machines, const Vocabulary& vocabulary,
                     const MaskLimits& limits)
    : walk(machines, vocabulary),
      allowed(vocabulary.words()),
      vocabulary_(vocabulary),
      limits_(limits),
      shared_(machines, limits.sets),
      once_(machines, limits.sets) {
  walk.step.read_at_most(static_cast<uint32_t>(vocabulary.longest()));
  clear_shared();
}

void MaskMaker::clear_shared() {
  cleared_ = false;
  shared_.sets.clear();
  shared_.lists.clear();
  end_ = shared_.lists.bottom(kEnd);
  outside_ = shared_.lists.bottom(kOutside);
  newest_.clear();
  agreements_.clear();
  cleared_ = true;
}

void MaskMaker::allow_work() {
  max_work_ = walk.step.work() + limits_.work;
  comparisons_left_ = kComparisons;
  pairs_left_ = kMaxPairs;
  if (!cleared_ || shared_.sets.full() || shared_.lists.size() > kMaxFrames) clear_shared();
  if (agreements_.size() > kMaxAgreements) agreements_.clear();
}

void MaskMaker::begin() {
  allowed.clear();
  worst = 0;
}

MaskMaker::StackContext& MaskMaker::over(const ReturnLists& lists) {
  once_.sets.clear();
  once_.lists.build_on(lists);
  return once_;
}

Status MaskMaker::finish_step(StackContext& context, WalkStart* start) {
  Step& step = walk.step;
  if (!step.finish(context.lists, limits_.items)) return too_much();
  start->items.assign(step.items().begin(), step.items().end());
  start->outside = step.outside();
  // Whether the text may end here is up to the caller: the set represents what is read.
  start->set =
      start->items.empty() ? std::nullopt : context.sets.state_of(step.items(), false, false);
  return {};
}

Status MaskMaker::come_to(StateId state, WalkStart* start) {
  walk.step.begin();
  walk.step.arrive(shared_.lists, state, outside_);
  return finish_step(shared_, start);
}

Status MaskMaker::leave(Frame frame, WalkStart* start) {
  frame.parent = outside_;
  walk.step.begin();
  walk.step.leave(shared_.lists, frame);
  return finish_step(shared_, start);
}

Status MaskMaker::too_much() const {
  return error(Code::kGrammar, "a mask takes more work than its limit of %llu",
               static_cast<unsigned long long>(limits_.work));
}

StateId MaskMaker::settled(StateId state) const noexcept {
  const Machines& machines = shared_.sets.machines();
  StateId at = state;
  for (int steps = 0; steps <= kMaxSteps; ++steps) {
    if (!machines.states[at].simple || !machines.tokens(at).empty()) return state;
    StateId most = at;
    uint32_t max_bytes = 0;
    // Edges to the same target are mostly adjacent.
    StateId target = kEnd;
    uint32_t bytes = 0;
    for (const ByteEdge& edge : machines.bytes(at)) {
      bytes = (edge.target == target ? bytes : 0) + edge.high - edge.low + 1U;
      target = edge.target;
      if (bytes > max_bytes) {
        max_bytes = bytes;
        most = target;
      }
    }
    if (most == at) return max_bytes >= kManyBytes ? at : state;
    at = most;
  }
  return state;
}

Result<std::shared_ptr<const StateMask>> MaskMaker::mask_of(StateId state, ListId list,
                                                            const BaseMask& base) {
  const Item item = {state, list};
  const WalkStart start = {{item}, false, shared_.sets.state_of({&item, 1}, false, false)};
  const bool alone = !allowed.many() && allowed.few().empty();
  if (start.set.has_value() && alone) {
    std::shared_ptr<StateMask> made;
    if (base.mask != nullptr) {
      const Item other = {base.state, list};
      const auto set = shared_.sets.state_of({&other, 1}, false, false);
      if (set.has_value()) made = mask_beside({*set, base.mask}, *start.set);
    }
    const Known* known = made == nullptr ? similar_to(*start.set) : nullptr;
    if (known != nullptr) made = mask_beside(*known, *start.set);
    if (made != nullptr) return std::shared_ptr<const StateMask>(std::move(made));
  }
  std::vector<uint32_t> exits;
  GEN_TRY(walk_below(0, shared_, start, &exits));
  return finish(std::move(exits));
}

Status MaskMaker::allow_from(StackContext& context, Item item) {
  const WalkStart start = {{item}, false, context.sets.state_of({&item, 1}, false, false)};
  std::vector<uint32_t> unused;
  return walk_below(0, context, start, &unused);
}

Status MaskMaker::allow_behind(const StateMask& mask, StackContext& context, const WalkStart& start,
                               std::vector<uint32_t>* exits) {
  if (start.items.empty()) return {};
  const uint64_t kinds = walk.reads(start.items);
  const bool marks = mask.exits.size() > kManyExits && (kinds & ~kMarks) == 0;
  for (const uint32_t place : marks ? mask.before_marks : mask.exits) {
    if ((vocabulary_.kinds_next(place) & kinds) != 0) {
      GEN_TRY(walk_below(place, context, start, exits));
    }
  }
  return {};
}

// Allows all texts below the trie node `top` that can be read from the start.
Status MaskMaker::walk_below(uint32_t top, StackContext& context, const WalkStart& start,
                             std::vector<uint32_t>* exits) {
  if (start.set.has_value() && walk_sets(top, context.sets, *start.set, exits)) return {};
  // Step by step, if there are too many sets to store.
  const auto trie = vocabulary_.trie();
  const auto visit = [&](uint32_t place, const Behind& behind, bool whole) {
    const Vocabulary::Node& node = trie[place];
    if (whole) {
      allowed.add(vocabulary_.tokens_from(place));
    } else if (node.token >= 0) {
      allow(node.token);
    }
    if (whole || node.token >= 0) {
      worst = std::max(worst, least_behind(shared_.sets.machines(), context.lists, behind));
    }
    if (behind.outside && node.skip > place + 1) exits->push_back(place);
  };
  if (!walk.run(context.lists, top, start.items, limits_.items, max_work_, visit)) {
    return too_much();
  }
  return {};
}

// False if there are too many sets; what was allowed up to then is correct.
bool MaskMaker::walk_sets(uint32_t top, SetAutomaton& sets, Id from, std::vector<uint32_t>* exits) {
  if (!expand(sets, from)) return false;
  const auto trie = vocabulary_.trie();
  const uint32_t base = trie[top].depth;
  if (path_.size() <= vocabulary_.longest()) path_.resize(vocabulary_.longest() + 1);
  path_[0] = from;
  for (uint32_t i = top + 1; i < trie[top].skip;) {
    const Vocabulary::Node& node = trie[i];
    const uint32_t depth = node.depth - base;
    const Id to = sets.row(path_[depth - 1])[node.byte];
    if (to == SetAutomaton::kNone) {
      i = node.skip;
      continue;
    }
    if (node.skip == i + 1) {
      allow(node.token);
      worst = std::max(worst, sets.at(to).least);
      ++i;
      continue;
    }
    if (!expand(sets, to)) return false;
    if (sets.at(to).outside) {
      exits->push_back(i);
    } else if (all_read_below(i, sets, to)) {
      allowed.add(vocabulary_.tokens_from(i));
      worst = std::max(worst, sets.at(to).least);
      i = node.skip;
      continue;
    }
    const SetAutomaton::State& state = sets.at(to);
    if (node.token >= 0) {
      allow(node.token);
      worst = std::max(worst, state.least);
    }
    path_[depth] = to;
    i = (vocabulary_.kinds_next(i) & state.reads) == 0 ? node.skip : i + 1;
  }
  return true;
}

// Whether everything below the trie node can be read from the set: usually the inside of a word.
bool MaskMaker::all_read_below(uint32_t place, SetAutomaton& sets, Id set) {
  const uint64_t kinds = vocabulary_.kinds_below(place);
  if ((kinds & ~sets.at(set).loops) == 0) return true;
  const uint8_t height = vocabulary_.trie()[place].height;
  return (kinds & ~sets.at(set).onward) == 0 && height < Vocabulary::kMaxHeight &&
         sets.leads_on(walk.step, set, kinds, height, limits_.items, max_work_, &worst);
}

const MaskMaker::Known* MaskMaker::similar_to(Id set) {
  for (const uint32_t height : {16U, 6U, 2U}) {
    for (size_t i = newest_.size(); i-- > 0;) {
      out_of_work_ = false;
      if (agree(newest_[i].set, set, height)) return &newest_[i];
    }
  }
  return nullptr;
}

// Whether the two sets read the same texts of at most `height` bytes, and all shorter ones lead to
// unknown continuations from both or from neither.
bool MaskMaker::agree(Id a, Id b, uint32_t height) {
  if (a == b) return true;
  if (a == SetAutomaton::kNone || b == SetAutomaton::kNone) return false;
  if (height == 0) return true;
  const uint32_t key = static_cast<uint32_t>(std::min(a, b)) << 16 | std::max(a, b);
  if (const auto known = agreements_.find(key); known != agreements_.end()) {
    if (known->second.same >= height) return true;
    if (known->second.differ <= height) return false;
  }
  SetAutomaton& sets = shared_.sets;
  if (out_of_work_ || pairs_left_ == 0 || height > kMaxCompared || !expand_cheaply(a) ||
      !expand_cheaply(b)) {
    out_of_work_ = true;
    return false;
  }
  --pairs_left_;
  bool same = sets.at(a).outside == sets.at(b).outside;
  const auto& row_a = sets.row(a);
  const auto& row_b = sets.row(b);
  Id last_a = SetAutomaton::kNone;
  Id last_b = SetAutomaton::kNone;
  for (size_t byte = 0; byte < 256 && same; ++byte) {
    // Most targets are equal, and are skipped four at a time.
    if (byte % 4 == 0 && std::memcmp(&row_a[byte], &row_b[byte], 4 * sizeof(Id)) == 0) {
      byte += 3;
      continue;
    }
    if (row_a[byte] == last_a && row_b[byte] == last_b) continue;
    last_a = row_a[byte];
    last_b = row_b[byte];
    same = agree(last_a, last_b, height - 1);
  }
  if (!same && out_of_work_) return false;
  Agreement& made = agreements_[key];
  if (same) {
    made.same = std::max(made.same, static_cast<uint16_t>(height));
  } else {
    made.differ = std::min(made.differ, static_cast<uint16_t>(height));
  }
  return same;
}

bool MaskMaker::expand_cheaply(Id id) {
  SetAutomaton& sets = shared_.sets;
  if (sets.at(id).expanded) return true;
  if (!sets.is_simple(id)) {
    if (comparisons_left_ == 0) return false;
    --comparisons_left_;
  }
  return expand(sets, id);
}

// The next trie nodes need slightly longer texts than this one: compares these at once.
bool MaskMaker::agree_further(Id a, Id b, uint32_t height) {
  if (a == b) return true;
  out_of_work_ = false;
  return (height + kFurther <= kMaxCompared && agree(a, b, height + kFurther)) ||
         (!(out_of_work_ = false) && agree(a, b, height));
}

// The mask of a known set, corrected where the two differ; null if there are too many sets.
std::shared_ptr<StateMask> MaskMaker::mask_beside(const Known& known, Id from) {
  added_.clear();
  removed_.clear();
  std::vector<uint32_t> exits;
  if (!walk_beside(known, from, &exits)) return nullptr;
  const StateMask& mask = *known.mask;
  auto made = std::make_shared<StateMask>();
  made->base = mask.base != nullptr ? mask.base : known.mask;
  std::sort(removed_.begin(), removed_.end());
  if (mask.base != nullptr) {
    std::copy_if(mask.list.begin(), mask.list.end(), std::back_inserter(added_),
                 [&](uint32_t token) {
                   return !std::binary_search(removed_.begin(), removed_.end(), token);
                 });
    removed_.insert(removed_.end(), mask.removed.begin(), mask.removed.end());
  }
  if (removed_.size() > StateMask::kMaxRemoved || added_.size() > vocabulary_.words() ||
      (mask.base != nullptr && !mask.bits.empty())) {
    return nullptr;  // too different
  }
  made->removed = removed_;
  made->list = added_;
  made->any = true;
  made->exits = std::move(exits);
  // Even where the two agree, the distance to the end may differ.
  made->worst = std::max(mask.worst, shared_.sets.greatest_least());
  list_marks(made.get());
  return made;
}

// Walks only below the trie nodes from which the two differ. False if there are too many sets.
bool MaskMaker::walk_beside(const Known& known, Id from, std::vector<uint32_t>* exits) {
  SetAutomaton& sets = shared_.sets;
  if (!expand(sets, from) || !expand(sets, known.set)) return false;
  const StateMask& mask = *known.mask;
  const auto trie = vocabulary_.trie();
  const size_t depths = vocabulary_.longest() + 1;
  if (path_.size() < depths) path_.resize(depths);
  if (path_beside_.size() < depths) path_beside_.resize(depths);
  path_[0] = from;
  path_beside_[0] = known.set;
  auto exit = mask.exits.begin();  // of the known mask, up to the current node
  const auto keep_exits_before = [&](uint32_t place) {
    while (exit != mask.exits.end() && *exit < place) exits->push_back(*exit++);
  };
  const auto drop_exits_before = [&](uint32_t place) {
    exit = std::lower_bound(exit, mask.exits.end(), place);
  };
  for (uint32_t i = 1; i < trie[0].skip;) {
    const Vocabulary::Node& node = trie[i];
    const Id to = sets.row(path_[node.depth - 1U])[node.byte];
    const Id other = sets.row(path_beside_[node.depth - 1U])[node.byte];
    if (to == other) {
      i = node.skip;
      continue;
    }
    if (to == SetAutomaton::kNone) {
      for (const int32_t token : vocabulary_.tokens_from(i)) {
        removed_.push_back(static_cast<uint32_t>(token));
      }
      if (removed_.size() > kMaxDifferent) return false;
      keep_exits_before(i);
      drop_exits_before(node.skip);
      i = node.skip;
      continue;
    }
    if (other == SetAutomaton::kNone) {
      for (int32_t token = node.token; token >= 0; token = vocabulary_.twin(token)) {
        added_.push_back(static_cast<uint32_t>(token));
      }
    }
    if (node.skip == i + 1) {
      ++i;
      continue;
    }
    if (other != SetAutomaton::kNone && agree_further(to, other, node.height)) {
      i = node.skip;
      continue;
    }
    if (!expand(sets, to) || !expand(sets, other)) return false;
    keep_exits_before(i);
    if (exit != mask.exits.end() && *exit == i) ++exit;
    if (sets.at(to).outside) exits->push_back(i);
    path_[node.depth] = to;
    path_beside_[node.depth] = other;
    ++i;
  }
  keep_exits_before(trie[0].skip);
  return true;
}

// Sorts and removes duplicates; with a bit per trie node if there are many.
void MaskMaker::sort_places(std::vector<uint32_t>* places) {
  const bool sorted = std::is_sorted(places->begin(), places->end());
  if (sorted || places->size() < kManySorted) {
    if (!sorted) std::sort(places->begin(), places->end());
    places->erase(std::unique(places->begin(), places->end()), places->end());
    places->shrink_to_fit();
    return;
  }
  sorted_.assign(vocabulary_.trie().size() / 64 + 1, 0);
  for (const uint32_t place : *places) sorted_[place / 64] |= uint64_t{1} << (place % 64);
  places->clear();
  for (size_t word = 0; word < sorted_.size(); ++word) {
    for (uint64_t bits = sorted_[word]; bits != 0; bits &= bits - 1) {
      places->push_back(
          static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits))));
    }
  }
  places->shrink_to_fit();
}

std::shared_ptr<const StateMask> MaskMaker::finish(std::vector<uint32_t> exits) {
  auto mask = std::make_shared<StateMask>();
  if (allowed.many()) {
    mask->bits.assign(allowed.bits().begin(), allowed.bits().end());
  } else {
    mask->list = allowed.few();
  }
  sort_places(&exits);
  mask->any = allowed.many() || !allowed.few().empty();
  mask->worst = worst;
  mask->exits = std::move(exits);
  list_marks(mask.get());
  return mask;
}

void MaskMaker::list_marks(StateMask* mask) const {
  if (mask->exits.size() <= kManyExits) return;
  for (const uint32_t place : mask->exits) {
    if ((vocabulary_.kinds_next(place) & kMarks) != 0) mask->before_marks.push_back(place);
  }
  mask->before_marks.shrink_to_fit();
}

void MaskMaker::remember(StateId state, ListId list, std::shared_ptr<const StateMask> mask) {
  const Item item = {state, list};
  const std::optional<Id> set = shared_.sets.state_of({&item, 1}, false, false);
  if (!set.has_value()) return;
  if (newest_.size() >= kMaxKnown) newest_.erase(newest_.begin());
  newest_.push_back({*set, std::move(mask)});
}

}  // namespace gen::grammar
