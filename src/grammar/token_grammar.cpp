// SPDX-License-Identifier: Apache-2.0
// Masks, see token_grammar.h.
#include "grammar/token_grammar.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gen::grammar {
namespace {

constexpr size_t kMostKeyStates = 64;
// For one mask: ways back that are looked at one by one, and new ones among them.
constexpr size_t kMostOpen = 96;
constexpr size_t kMostMade = 24;
// With more, those before a mark are listed apart: that is what follows a word.
constexpr size_t kManyExits = 64;
constexpr uint64_t kMarks = ~((uint64_t{1} << kFirstMark) - 1);

bool same(const Frame& a, const Frame& b) noexcept {
  return a.ret == b.ret && a.loop == b.loop && a.low == b.low && a.high == b.high;
}

}  // namespace

Result<std::shared_ptr<const TokenGrammar>> TokenGrammar::create(
    std::shared_ptr<const Machines> machines, std::shared_ptr<const Vocabulary> vocabulary,
    const MaskLimits& limits) {
  auto made = std::make_shared<TokenGrammar>(std::move(machines), std::move(vocabulary), limits);
  for (const TokenTerm& term : made->machines_->terms) {
    const int32_t size = made->vocabulary_->size();
    const int32_t id = term.name.empty() ? term.id : made->vocabulary_->find(term.name);
    if (id < 0) {
      return error(Code::kGrammar, "no token %s in the vocabulary", term.name.c_str());
    }
    if (id >= size) {
      return error(Code::kGrammar, "token %d of the grammar outside vocabulary of %d", id, size);
    }
    made->terms_.push_back(id);
  }
  return std::shared_ptr<const TokenGrammar>(std::move(made));
}

TokenGrammar::TokenGrammar(std::shared_ptr<const Machines> machines,
                           std::shared_ptr<const Vocabulary> vocabulary, const MaskLimits& limits)
    : machines_(std::move(machines)),
      vocabulary_(std::move(vocabulary)),
      limits_(limits),
      walk_(*machines_, *vocabulary_) {
  const uint32_t root = machines_->root;
  for (const CallEdge& edge : machines_->call_edges) {
    if (edge.machine == root) return;
  }
  const auto& starts = machines_->starts;
  root_begin_ = starts[root];
  root_end_ = root + 1 < starts.size() ? starts[root + 1]
                                       : static_cast<StateId>(machines_->states.size() - 1);
}

bool TokenGrammar::matches(uint32_t term, int32_t token) const noexcept {
  if (!machines_->terms[term].negated) return terms_[term] == token;
  return terms_[term] != token && !vocabulary_->is_end(token);
}

TokenGrammar::Statistics TokenGrammar::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

Status TokenGrammar::mask(const ReturnLists& lists, std::span<const Item> items,
                          std::span<uint64_t> out, uint64_t* worst) const {
  const std::lock_guard lock(mutex_);
  if (statistics_.bytes > limits_.cache_bytes) {
    entries_.clear();
    statistics_.bytes = 0;
  }
  most_work_ = walk_.step.work() + limits_.work;
  open_.clear();
  uint64_t most_behind = 0;
  for (const Item item : items) {
    GEN_ASSIGN(Entry * entry, entry_of(item.state));
    open_.emplace_back(entry, item.list);
  }
  size_t made = 0;
  for (size_t i = 0; i < open_.size(); ++i) {
    const auto [entry, list] = open_[i];
    const StateMask& mask = *entry->mask;
    if (mask.any) {
      const uint64_t length = list == kNoFrame ? 0 : lists.at(list).length;
      most_behind = std::max(most_behind, mask.worst + length);
    }
    for (size_t word = 0; word < mask.bits.size(); ++word) out[word] |= mask.bits[word];
    for (const uint32_t token : mask.list) out[token / 64] |= uint64_t{1} << (token % 64);
    if (mask.exits.empty()) continue;
    for (ListId id = list; id != kNoFrame; id = lists.at(id).next) {
      const Frame& frame = lists.at(id);
      if (frame.ret == kEnd) continue;
      const uint64_t before = statistics_.made;
      GEN_ASSIGN(Entry * next, entry_behind(entry, frame));
      made += statistics_.made - before;
      const std::pair<Entry*, ListId> one(next, frame.parent);
      if (std::find(open_.rbegin(), open_.rend(), one) == open_.rend()) open_.push_back(one);
      if (open_.size() > kMostOpen + items.size() || made > kMostMade) {
        if (worst != nullptr) *worst = UINT64_MAX;
        return mask_together(lists, items, out);
      }
    }
  }
  if (worst != nullptr) *worst = most_behind;
  return {};
}

// For places with many ways back: frames of a list side by side, and nothing is kept but what the
// states allow themselves, and the bodies of loops.
Status TokenGrammar::mask_together(const ReturnLists& lists, std::span<const Item> items,
                                   std::span<uint64_t> out) const {
  for (const Item item : items) {
    GEN_ASSIGN(Entry * entry, entry_of(item.state));
    for (ListId id = item.list; id != kNoFrame; id = lists.at(id).next) {
      const uint32_t loop = lists.at(id).loop;
      if (counts(loop)) GEN_TRY(loop_masks(entry, machines_->loops[loop].machine).status());
    }
  }
  lists_.build_on(lists);
  begin_mask();
  std::vector<uint32_t> unused;
  Step& step = walk_.step;
  // From where the step comes to, below the exits of masks.
  const auto finish_step = [&]() -> Status {
    if (!step.finish(lists_, limits_.items)) return too_much();
    from_.assign(step.items().begin(), step.items().end());
    return {};
  };
  for (const Item item : items) {
    GEN_ASSIGN(Entry * entry, entry_of(item.state));  // known by now, as are its loops
    const StateMask& mask = *entry->mask;
    for (size_t word = 0; word < mask.bits.size(); ++word) out[word] |= mask.bits[word];
    for (const uint32_t token : mask.list) out[token / 64] |= uint64_t{1} << (token % 64);
    if (mask.exits.empty()) continue;
    step.begin();
    for (ListId id = item.list; id != kNoFrame; id = lists_.at(id).next) {
      if (!counts(lists_.at(id).loop)) step.leave(lists_.at(id));
    }
    GEN_TRY(finish_step());
    GEN_TRY(walk_from(mask, from_, &unused));
    lists_.shrink(lists.size());
    for (ListId id = item.list; id != kNoFrame; id = lists_.at(id).next) {
      const Frame frame = lists_.at(id);
      if (!counts(frame.loop)) continue;
      GEN_ASSIGN(const auto masks, loop_masks(entry, machines_->loops[frame.loop].machine));
      const LoopReach reach = reach_of(frame, *masks);
      const std::vector<uint64_t>& within = masks->within[reach.further];
      for (size_t word = 0; word < out.size(); ++word) out[word] |= within[word];
      step.begin();
      step.arrive(frame.ret, frame.parent);
      GEN_TRY(finish_step());
      for (size_t n = reach.first_end; n < reach.behind_ends; ++n) {
        GEN_TRY(walk_from(*masks->level[n], from_, &unused));
      }
      lists_.shrink(lists.size());
    }
  }
  for (size_t word = 0; word < out.size(); ++word) out[word] |= allowed_[word];
  return {};
}

// Allows what can be read from where the mask's states end.
Status TokenGrammar::walk_from(const StateMask& mask, std::span<const Item> from,
                               std::vector<uint32_t>* exits) const {
  if (from.empty()) return {};
  const uint64_t kinds = walk_.reads(from);
  const bool marks = mask.exits.size() > kManyExits && (kinds & ~kMarks) == 0;
  for (const uint32_t place : marks ? mask.before_marks : mask.exits) {
    if ((vocabulary_->kinds_next(place) & kinds) != 0) GEN_TRY(walk(place, from, exits));
  }
  return {};
}

void TokenGrammar::allow_term(uint32_t term) const {
  if (!machines_->terms[term].negated) {
    allow_one(terms_[term]);
    return;
  }
  for (int32_t token = 0; token < vocabulary_->size(); ++token) {
    if (matches(term, token)) allow_one(token);
  }
}

// Those that the state asks for by name.
void TokenGrammar::allow_named(StateId state) const {
  for (const TokenEdge& edge : machines_->tokens(state)) {
    allow_term(edge.term);
    worst_ = UINT64_MAX / 4;  // what calls it comes to is not looked at here
  }
}

// The counts of a loop only matter if the tokens to come can reach one of its ends.
Frame TokenGrammar::general(const Frame& frame) const noexcept {
  Frame made = {frame.ret, 0, frame.loop, frame.low, frame.high, kNoFrame, 0};
  if (!counts(frame.loop)) return made;
  const Loop& loop = machines_->loops[frame.loop];
  const uint64_t reach = vocabulary_->longest() + 1;
  const bool far_below = made.high + reach < loop.min;
  const bool inside =
      made.low >= loop.min && (loop.max == kUnbounded || made.high + reach < loop.max);
  if (far_below) {
    made.low = made.high = 0;
  } else if (inside) {
    made.low = made.high = loop.min;
  }
  return made;
}

Result<TokenGrammar::Entry*> TokenGrammar::entry_of(StateId state) const {
  if (const auto known = entries_.find(state); known != entries_.end()) return known->second.get();
  auto made = std::make_unique<Entry>();
  const bool of_root = state >= root_begin_ && state < root_end_;
  std::string& key = made->key = key_of(state);
  if (!key.empty() && of_root) key.push_back('r');
  if (!key.empty()) made->mask = vocabulary_->pool().find(key);
  if (made->mask == nullptr) {
    begin_mask();
    lists_.clear();
    const Item item = {state, lists_.bottom(of_root ? kEnd : kOutside)};
    allow_named(state);
    std::vector<uint32_t> exits;
    GEN_TRY(walk(0, {&item, 1}, &exits));
    made->mask = finish(std::move(exits));
    if (!key.empty()) vocabulary_->pool().add(key, made->mask);
  }
  count(*made);
  return entries_.emplace(state, std::move(made)).first->second.get();
}

// What the state can do, written out, if that takes no calls and no tokens by name and few states:
// each state's edges, states numbered in the order in which they are met. Empty if not.
std::string TokenGrammar::key_of(StateId state) const {
  std::vector<StateId> met = {state};
  std::string key;
  for (size_t i = 0; i < met.size(); ++i) {
    if (!machines_->calls(met[i]).empty() || !machines_->tokens(met[i]).empty()) return {};
    key.push_back(machines_->states[met[i]].final ? 'f' : 's');
    for (const ByteEdge& edge : machines_->bytes(met[i])) {
      const auto place = std::find(met.begin(), met.end(), edge.target);
      const auto number = static_cast<size_t>(place - met.begin());
      if (place == met.end()) met.push_back(edge.target);
      if (number >= kMostKeyStates) return {};
      key.push_back(static_cast<char>(number));
      key.push_back(static_cast<char>(edge.low));
      key.push_back(static_cast<char>(edge.high));
    }
    key.push_back('\xFF');  // no number
  }
  return key;
}

void TokenGrammar::count(const Entry& entry) const noexcept {
  statistics_.bytes += sizeof(entry) + entry.mask->memory() + 64;
  ++statistics_.made;
}

Result<TokenGrammar::Entry*> TokenGrammar::entry_behind(Entry* entry, const Frame& frame) const {
  Frame wanted = general(frame);
  for (const auto& [known, next] : entry->next) {
    if (same(known, wanted)) return next.get();
  }
  auto made = std::make_unique<Entry>();
  std::vector<uint32_t> exits;
  if (counts(wanted.loop)) {
    GEN_TRY(allow_behind_loop(entry, wanted, &exits));
  } else {
    begin_mask();
    lists_.clear();
    GEN_ASSIGN(const bool outside, leave(wanted));
    if (outside) exits = entry->mask->exits;
    GEN_TRY(walk_from(*entry->mask, from_, &exits));
  }
  made->mask = finish(std::move(exits));
  count(*made);
  entry->next.emplace_back(wanted, std::move(made));
  return entry->next.back().second.get();
}

// Items of a state, or, for its machine, of a start, to from_; lists_ is empty before. Whether
// nothing at all may follow in its machine.
Result<bool> TokenGrammar::come_to(StateId state) const {
  walk_.step.begin();
  walk_.step.arrive(state, lists_.bottom(kOutside));
  if (!walk_.step.finish(lists_, limits_.items)) return too_much();
  from_.assign(walk_.step.items().begin(), walk_.step.items().end());
  return walk_.step.outside();
}

// The same behind a frame that is no loop's, or one of members.
Result<bool> TokenGrammar::leave(Frame frame) const {
  frame.parent = lists_.bottom(kOutside);
  walk_.step.begin();
  walk_.step.leave(frame);
  if (!walk_.step.finish(lists_, limits_.items)) return too_much();
  from_.assign(walk_.step.items().begin(), walk_.step.items().end());
  return walk_.step.outside();
}

bool TokenGrammar::counts(uint32_t loop) const noexcept {
  return loop != 0 && machines_->loops[loop].members == 0;
}

Result<std::shared_ptr<const LoopMasks>> TokenGrammar::loop_masks(Entry* entry,
                                                                  uint32_t machine) const {
  for (const auto& [known, masks] : entry->loops) {
    if (known == machine) return masks;
  }
  const StateId start = machines_->starts[machine];
  std::string key = entry->key.empty() ? "" : key_of(start);
  if (!key.empty()) key = entry->key + "\xFF\xFF" + key;
  std::shared_ptr<const LoopMasks> masks =
      key.empty() ? nullptr : vocabulary_->pool().find_loop(key);
  if (masks == nullptr) {
    auto made = std::make_shared<LoopMasks>();
    made->level.push_back(entry->mask);
    made->within.emplace_back(vocabulary_->words(), 0);
    while (!made->level.back()->exits.empty()) {
      begin_mask();
      lists_.clear();
      std::vector<uint32_t> exits;
      GEN_ASSIGN(const bool outside, come_to(start));
      GEN_ASSERT(!outside);
      GEN_TRY(walk_from(*made->level.back(), from_, &exits));
      made->worst = std::max(made->worst, worst_);
      std::vector<uint64_t> within = made->within.back();
      for (size_t word = 0; word < within.size(); ++word) within[word] |= allowed_[word];
      made->within.push_back(std::move(within));
      made->level.push_back(finish(std::move(exits)));
    }
    masks = std::move(made);
    if (!key.empty()) vocabulary_->pool().add_loop(key, masks);
  }
  statistics_.bytes += masks->memory();
  entry->loops.emplace_back(machine, masks);
  return masks;
}

// Behind level n the body has been there low + 1 + n to high + 1 + n times.
TokenGrammar::LoopReach TokenGrammar::reach_of(const Frame& frame,
                                               const LoopMasks& masks) const noexcept {
  const Loop& loop = machines_->loops[frame.loop];
  const uint64_t most = loop.max == kUnbounded ? UINT64_MAX : loop.max;
  const uint64_t low = std::min(frame.low + uint64_t{1}, most);
  const uint64_t high = frame.high + uint64_t{1};
  LoopReach reach;
  reach.further = std::min<uint64_t>(most - low, masks.within.size() - 1);
  reach.first_end = loop.min > high ? loop.min - high : 0;
  reach.behind_ends = reach.further + 1;
  reach.missing = loop.min > low ? loop.min - low : 0;
  return reach;
}

// The loop goes on where its count allows, and ends where it may.
Status TokenGrammar::allow_behind_loop(Entry* entry, const Frame& frame,
                                       std::vector<uint32_t>* exits) const {
  const uint32_t machine = machines_->loops[frame.loop].machine;
  GEN_ASSIGN(const auto masks, loop_masks(entry, machine));
  const LoopReach reach = reach_of(frame, *masks);
  begin_mask();
  allowed_ = masks->within[reach.further];
  worst_ = masks->worst + reach.missing * machines_->shortest(machine) +
           machines_->states[frame.ret].shortest;
  lists_.clear();
  GEN_ASSIGN(const bool outside, come_to(frame.ret));
  for (size_t n = reach.first_end; n < reach.behind_ends; ++n) {
    const StateMask& mask = *masks->level[n];
    if (outside) exits->insert(exits->end(), mask.exits.begin(), mask.exits.end());
    GEN_TRY(walk_from(mask, from_, exits));
  }
  return {};
}

void TokenGrammar::allow_one(int32_t token) const noexcept {
  allowed_[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
}

void TokenGrammar::allow(int32_t token) const noexcept {
  for (; token >= 0; token = vocabulary_->twin(token)) allow_one(token);
}

std::shared_ptr<const StateMask> TokenGrammar::finish(std::vector<uint32_t> exits) const {
  auto mask = std::make_shared<StateMask>();
  size_t count = 0;
  for (const uint64_t word : allowed_) count += static_cast<size_t>(std::popcount(word));
  if (count > allowed_.size()) {
    mask->bits = allowed_;
  } else {
    mask->list.reserve(count);
    for (size_t word = 0; word < allowed_.size(); ++word) {
      for (uint64_t bits = allowed_[word]; bits != 0; bits &= bits - 1) {
        mask->list.push_back(
            static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits))));
      }
    }
  }
  if (!std::is_sorted(exits.begin(), exits.end())) std::sort(exits.begin(), exits.end());
  exits.erase(std::unique(exits.begin(), exits.end()), exits.end());
  exits.shrink_to_fit();
  mask->any = count > 0;
  mask->worst = worst_;
  mask->exits = std::move(exits);
  if (mask->exits.size() > kManyExits) {
    for (const uint32_t place : mask->exits) {
      if ((vocabulary_->kinds_next(place) & kMarks) != 0) mask->before_marks.push_back(place);
    }
    mask->before_marks.shrink_to_fit();
  }
  return mask;
}

Status TokenGrammar::too_much() const {
  return error(Code::kGrammar, "a mask takes more work than its limit of %llu",
               static_cast<unsigned long long>(limits_.work));
}

void TokenGrammar::begin_mask() const {
  allowed_.assign(vocabulary_->words(), 0);
  worst_ = 0;
}

// Allows all texts below `top` that can be read from there.
Status TokenGrammar::walk(uint32_t top, std::span<const Item> from,
                          std::vector<uint32_t>* exits) const {
  const auto trie = vocabulary_->trie();
  const auto visit = [&](uint32_t place, const Behind& behind, bool whole) {
    const Vocabulary::Node& node = trie[place];
    if (whole) {
      for (const int32_t token : vocabulary_->tokens_from(place)) allow_one(token);
      worst_ = std::max(worst_, least_behind(*machines_, lists_, behind));
    } else if (node.token >= 0) {
      allow(node.token);
      worst_ = std::max(worst_, least_behind(*machines_, lists_, behind));
    }
    if (behind.outside && node.skip > place + 1) exits->push_back(place);
  };
  if (!walk_.run(lists_, top, from, limits_.items, most_work_, visit)) return too_much();
  return {};
}

Status TokenGrammar::mask_within(ReturnLists& lists, std::span<const Item> items, uint64_t most,
                                 std::span<uint64_t> out) const {
  std::fill(out.begin(), out.end(), 0);
  uint64_t worst = 0;
  GEN_TRY(mask(lists, items, out, &worst));
  if (worst <= most) return {};
  std::fill(out.begin(), out.end(), 0);
  const std::lock_guard lock(mutex_);
  begin_mask();
  most_work_ = walk_.step.work() + limits_.work;
  const size_t frames = lists.size();
  Step& step = walk_.step;
  for (const Item item : items) {
    for (const TokenEdge& edge : machines_->tokens(item.state)) {
      step.begin();
      step.arrive(edge.target, item.list);
      if (!step.finish(lists, limits_.items)) {
        lists.shrink(frames);
        return too_much();
      }
      const Behind behind = {step.items(), step.ended(), step.outside()};
      if (least_behind(*machines_, lists, behind) <= most) allow_term(edge.term);
      lists.shrink(frames);
    }
  }
  const auto trie = vocabulary_->trie();
  const auto visit = [&](uint32_t place, const Behind& behind, bool whole) {
    const int32_t token = trie[place].token;
    if ((token < 0 && !whole) || least_behind(*machines_, lists, behind) > most) return;
    if (!whole) return allow(token);
    for (const int32_t below : vocabulary_->tokens_from(place)) allow_one(below);
  };
  if (!walk_.run(lists, 0, items, limits_.items, most_work_, visit)) return too_much();
  std::copy(allowed_.begin(), allowed_.end(), out.begin());
  return {};
}

int32_t TokenGrammar::some_token(uint32_t term) const noexcept {
  if (!machines_->terms[term].negated) return terms_[term];
  for (int32_t token = 0; token < vocabulary_->size(); ++token) {
    if (matches(term, token)) return token;
  }
  return -1;
}

}  // namespace gen::grammar
