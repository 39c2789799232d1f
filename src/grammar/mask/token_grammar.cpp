// SPDX-License-Identifier: Apache-2.0
// Masks, see token_grammar.h.
#include "grammar/mask/token_grammar.h"

#include <algorithm>
#include <array>
#include <utility>

namespace gen::grammar {
namespace {

constexpr size_t kMaxKeyStates = 64;
// Used in keys, where it cannot be the number of a state.
constexpr char kNextState = '\xFF';
constexpr char kCall = '\xFE';
constexpr char kHandOver = '\xFD';
// Limits per mask: continuations that are examined individually, and new ones among them.
constexpr size_t kMaxOpen = 96;
constexpr size_t kMaxMade = 24;
// For a level of a loop with this many exits, continuations are cached separately.
constexpr size_t kManyPlaces = 128;
// More bytes to an end than any limit.
constexpr uint64_t kFarAway = uint64_t{1} << 62;

}  // namespace

Result<std::shared_ptr<const TokenGrammar>> TokenGrammar::create(
    std::shared_ptr<const Machines> machines, std::shared_ptr<const Vocabulary> vocabulary,
    const MaskLimits& limits, const CancelFlag* cancel) {
  const auto cancelled = [&] { return cancel != nullptr && cancel->raised(); };
  if (cancelled()) return error(Code::kCancelled, "cancelled before the grammar was prepared");
  auto made = std::make_shared<TokenGrammar>(std::move(machines), std::move(vocabulary), limits);
  for (const TokenTerm& term : made->machines_->terms) {
    if (cancelled()) return error(Code::kCancelled, "cancelled while the grammar was prepared");
    std::vector<TokenRange> ranges = term.ranges;
    if (!term.name.empty()) {
      const int32_t id = made->vocabulary_->find(term.name);
      if (id < 0) {
        return error(Code::kGrammar, "no token %s in the vocabulary", term.name.c_str());
      }
      ranges = {{id, id}};
    } else if (ranges.empty() && term.id >= 0) {
      ranges = {{term.id, term.id}};
    }
    const int32_t size = made->vocabulary_->size();
    if (!ranges.empty() && ranges.back().high >= size) {
      return error(Code::kGrammar, "token %d of the grammar outside vocabulary of %d",
                   ranges.back().high, size);
    }
    made->terms_.push_back(std::move(ranges));
  }
  return std::shared_ptr<const TokenGrammar>(std::move(made));
}

TokenGrammar::TokenGrammar(std::shared_ptr<const Machines> machines,
                           std::shared_ptr<const Vocabulary> vocabulary, const MaskLimits& limits)
    : machines_(std::move(machines)),
      vocabulary_(std::move(vocabulary)),
      limits_(limits),
      maker_(*machines_, *vocabulary_, limits) {
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
  const auto& ranges = terms_[term];
  const auto behind = std::partition_point(ranges.begin(), ranges.end(),
                                           [&](const TokenRange& r) { return r.low <= token; });
  const bool named = behind != ranges.begin() && (behind - 1)->high >= token;
  return machines_->terms[term].negated ? !named && !vocabulary_->is_end(token) : named;
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
  maker_.allow_work();
  const auto longest = static_cast<uint32_t>(vocabulary_->longest());
  for (const Item item : items) {
    if (!is_near_limit(*machines_, lists, item, longest)) continue;
    if (worst != nullptr) *worst = UINT64_MAX;
    return mask_together(lists, items, out);
  }
  open_.clear();
  uint64_t max_behind = 0;
  for (const Item item : items) {
    GEN_ASSIGN(Entry * entry, entry_of(item.state));
    open_.push_back({entry, item.list, 0});
  }
  size_t made = 0;
  for (size_t i = 0; i < open_.size(); ++i) {
    const auto [entry, list, missing] = open_[i];
    const StateMask& mask = *entry->mask;
    if (mask.any) {
      const uint64_t length = list == kNoFrame ? 0 : lists.at(list).length;
      max_behind = std::max(max_behind, mask.worst + missing + length);
    }
    mask.add_to(out);
    if (mask.exits.empty()) continue;
    for (ListId id = list; id != kNoFrame; id = lists.at(id).next) {
      const Frame& frame = lists.at(id);
      if (frame.ret == kEnd) continue;
      const uint64_t before = statistics_.made;
      Open one = {nullptr, frame.parent, 0};
      GEN_ASSIGN(one.entry, entry_behind(entry, frame, &one.missing));
      made += statistics_.made - before;
      const auto known = std::find_if(open_.begin(), open_.end(), [&](const Open& other) {
        return other.entry == one.entry && other.list == one.list && other.missing >= one.missing;
      });
      if (known == open_.end()) open_.push_back(one);
      if (open_.size() > kMaxOpen + items.size() || made > kMaxMade) {
        if (worst != nullptr) *worst = UINT64_MAX;
        return mask_together(lists, items, out);
      }
    }
  }
  if (worst != nullptr) *worst = max_behind;
  return {};
}

// For positions with many continuations: all frames of a list are followed together, and nothing is
// cached except the masks of the states themselves and the bodies of loops.
Status TokenGrammar::mask_together(const ReturnLists& lists, std::span<const Item> items,
                                   std::span<uint64_t> out) const {
  const auto longest = static_cast<uint32_t>(vocabulary_->longest());
  for (const Item item : items) {
    if (is_near_limit(*machines_, lists, item, longest)) continue;
    GEN_ASSIGN(Entry * entry, entry_of(item.state));
    for (ListId id = item.list; id != kNoFrame; id = lists.at(id).next) {
      const uint32_t loop = lists.at(id).loop;
      if (counts(loop)) GEN_TRY(loop_masks(entry, machines_->loops[loop].machine).status());
    }
  }
  MaskMaker::StackContext& context = maker_.over(lists);
  MaskMaker::WalkStart start;
  maker_.begin();
  std::vector<uint32_t> unused;
  Step& step = maker_.walk.step;
  for (const Item item : items) {
    if (is_near_limit(*machines_, lists, item, longest)) {
      GEN_TRY(maker_.allow_from(context, item));
      continue;
    }
    GEN_ASSIGN(Entry * entry, entry_of(item.state));  // known by now, and so are its loops
    const StateMask& mask = *entry->mask;
    mask.add_to(out);
    if (mask.exits.empty()) continue;
    step.begin();
    for (ListId id = item.list; id != kNoFrame; id = lists.at(id).next) {
      if (!counts(lists.at(id).loop)) step.leave(context.lists, lists.at(id));
    }
    GEN_TRY(maker_.finish_step(context, &start));
    GEN_TRY(maker_.allow_behind(mask, context, start, &unused));
    for (ListId id = item.list; id != kNoFrame; id = lists.at(id).next) {
      const Frame& frame = lists.at(id);
      if (!counts(frame.loop)) continue;
      uint64_t missing = 0;
      GEN_ASSIGN(const ReturnKey return_key, return_key_of(entry, frame, &missing));
      GEN_ASSIGN(const auto masks, loop_masks(entry, return_key.loop_machine));
      const std::vector<uint64_t>& within = masks->within[return_key.further];
      for (size_t word = 0; word < out.size(); ++word) out[word] |= within[word];
      step.begin();
      step.arrive(context.lists, frame.ret, frame.parent);
      GEN_TRY(maker_.finish_step(context, &start));
      for (size_t n = return_key.first_end; n < return_key.behind_ends; ++n) {
        GEN_TRY(maker_.allow_behind(*masks->level[n], context, start, &unused));
      }
    }
  }
  for (size_t word = 0; word < out.size(); ++word) out[word] |= maker_.allowed.bits()[word];
  return {};
}

void TokenGrammar::allow_term(uint32_t term) const {
  if (!machines_->terms[term].negated) {
    for (const TokenRange& range : terms_[term]) {
      for (int32_t token = range.low; token <= range.high; ++token) maker_.allowed.add(token);
    }
    return;
  }
  for (int32_t token = 0; token < vocabulary_->size(); ++token) {
    if (matches(term, token)) maker_.allowed.add(token);
  }
}

// Allows the tokens that the state asks for by name.
void TokenGrammar::allow_named(StateId state) const {
  for (const TokenEdge& edge : machines_->tokens(state)) {
    allow_term(edge.term);
    maker_.worst = UINT64_MAX / 4;  // calls after it are not examined here
  }
}

Result<TokenGrammar::Entry*> TokenGrammar::entry_of(StateId state) const {
  if (const auto known = entries_.find(state); known != entries_.end()) return known->second.get();
  auto made = std::make_unique<Entry>();
  const bool of_root = state >= root_begin_ && state < root_end_;
  std::string& key = made->key = key_of(state);
  if (!key.empty() && of_root) key.push_back('r');
  if (!key.empty()) made->mask = vocabulary_->pool().find(key);
  const ListId bottom = maker_.bottom(of_root ? kEnd : kOutside);
  if (made->mask == nullptr) {
    MaskMaker::BaseMask base;
    const StateId settled = maker_.settled(state);
    if (settled != state) {
      GEN_ASSIGN(const Entry* other, entry_of(settled));
      base = {settled, other->mask};
    }
    maker_.begin();
    allow_named(state);
    GEN_ASSIGN(made->mask, maker_.mask_of(state, bottom, base));
    if (!key.empty() && made->mask->base == nullptr) vocabulary_->pool().add(key, made->mask);
  }
  if (machines_->tokens(state).empty()) maker_.remember(state, bottom, made->mask);
  count(*made);
  return entries_.emplace(state, std::move(made)).first->second.get();
}

// The behaviour of the state, serialised, if it has no loops, no tokens by name and few states: the
// edges and calls of each state, numbered in the order in which they are met. Otherwise empty.
std::string TokenGrammar::key_of(StateId state) const {
  std::vector<StateId> met;
  std::array<uint8_t, 256> places{};  // a hash table of state numbers, from 1 on
  static_assert(places.size() > 2 * kMaxKeyStates);
  const auto number_of = [&](StateId one) {
    size_t at = one % places.size();
    while (places[at] != 0 && met[places[at] - 1U] != one) at = (at + 1) % places.size();
    if (places[at] == 0 && met.size() <= kMaxKeyStates) {
      met.push_back(one);
      places[at] = static_cast<uint8_t>(met.size());
    }
    return static_cast<char>(places[at]);
  };
  std::string key;
  number_of(state);
  for (size_t i = 0; i < met.size(); ++i) {
    if (met.size() > kMaxKeyStates || !machines_->tokens(met[i]).empty()) return {};
    key.push_back(machines_->states[met[i]].final ? 'f' : 's');
    for (const ByteEdge& edge : machines_->bytes(met[i])) {
      key.push_back(number_of(edge.target));
      key.push_back(static_cast<char>(edge.low));
      key.push_back(static_cast<char>(edge.high));
    }
    for (const CallEdge& edge : machines_->calls(met[i])) {
      if (edge.loop != 0) return {};
      key.push_back(edge.hand_over ? kHandOver : kCall);
      key.push_back(number_of(machines_->starts[edge.machine]));
      if (!edge.hand_over) key.push_back(number_of(edge.target));
    }
    key.push_back(kNextState);
  }
  return key;
}

void TokenGrammar::count(const Entry& entry) const noexcept {
  statistics_.bytes += sizeof(entry) + entry.mask->memory() + 64;
  ++statistics_.made;
}

Result<TokenGrammar::Entry*> TokenGrammar::entry_behind(Entry* entry, const Frame& frame,
                                                        uint64_t* missing) const {
  GEN_ASSIGN(const ReturnKey return_key, return_key_of(entry, frame, missing));
  for (const auto& [known, next] : entry->next) {
    if (known == return_key) return next.get();
  }
  auto made = std::make_unique<Entry>();
  std::vector<uint32_t> exits;
  if (counts(frame.loop)) {
    GEN_TRY(allow_behind_loop(entry, return_key, &exits));
  } else {
    maker_.begin();
    MaskMaker::WalkStart start;
    GEN_TRY(maker_.leave(frame, &start));
    if (start.outside) exits = entry->mask->exits;
    GEN_TRY(maker_.allow_behind(*entry->mask, maker_.shared(), start, &exits));
  }
  made->mask = maker_.finish(std::move(exits));
  count(*made);
  entry->next.emplace_back(return_key, std::move(made));
  return entry->next.back().second.get();
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
    MaskMaker::WalkStart begin;
    GEN_TRY(maker_.come_to(start, &begin));
    GEN_ASSERT(!begin.outside);
    std::vector<MaskMaker::Level> levels;
    const bool apart = !entry->mask->exits.empty() && maker_.levels(*entry->mask, begin, &levels);
    while (!made->level.back()->exits.empty()) {
      std::vector<uint32_t> exits;
      if (apart) {
        MaskMaker::Level& level = levels[made->level.size() - 1];
        maker_.allow_level(level);
        exits = std::move(level.exits);
      } else {
        maker_.begin();
        GEN_TRY(maker_.allow_behind(*made->level.back(), maker_.shared(), begin, &exits));
      }
      made->worst = std::max(made->worst, maker_.worst);
      std::vector<uint64_t> within = made->within.back();
      for (size_t word = 0; word < within.size(); ++word)
        within[word] |= maker_.allowed.bits()[word];
      made->within.push_back(std::move(within));
      made->level.push_back(maker_.finish(std::move(exits)));
    }
    masks = std::move(made);
    if (!key.empty()) vocabulary_->pool().add_loop(key, masks);
  }
  statistics_.bytes += masks->memory();
  entry->loops.emplace_back(machine, masks);
  return masks;
}

bool TokenGrammar::counts(uint32_t loop) const noexcept {
  return loop != 0 && machines_->loops[loop].members == 0 && !machines_->loops[loop].limited;
}

// After level n the body of a loop has completed low + 1 + n to high + 1 + n rounds.
Result<TokenGrammar::ReturnKey> TokenGrammar::return_key_of(Entry* entry, const Frame& frame,
                                                            uint64_t* missing) const {
  ReturnKey return_key;
  return_key.ret = frame.ret;
  *missing = 0;
  if (frame.loop == 0) return return_key;
  const Loop& loop = machines_->loops[frame.loop];
  if (loop.limited) return return_key;  // far from its limit
  if (!counts(frame.loop)) {
    return_key.members_of = frame.loop;
    return_key.low = frame.low;
    return_key.set = frame.set;
    return return_key;
  }
  GEN_ASSIGN(const auto masks, loop_masks(entry, loop.machine));
  const uint64_t most = loop.max == kUnbounded ? UINT64_MAX : loop.max;
  const uint64_t low = std::min(frame.low + uint64_t{1}, most);
  const uint64_t high = frame.high + uint64_t{1};
  return_key.loop_machine = loop.machine;
  return_key.further =
      static_cast<uint32_t>(std::min<uint64_t>(most - low, masks->within.size() - 1));
  const uint64_t first_end = loop.min > high ? loop.min - high : 0;
  if (first_end <= return_key.further) {
    return_key.first_end = static_cast<uint32_t>(first_end);
    return_key.behind_ends = return_key.further + 1;
  }
  if (loop.min > low) {
    *missing = std::min<uint64_t>((loop.min - low) * machines_->shortest(loop.machine), kFarAway);
  }
  return return_key;
}

// The loop continues where its count allows, and ends where it may.
Status TokenGrammar::allow_behind_loop(Entry* entry, const ReturnKey& return_key,
                                       std::vector<uint32_t>* exits) const {
  GEN_ASSIGN(const auto masks, loop_masks(entry, return_key.loop_machine));
  MaskMaker::WalkStart start;
  GEN_TRY(maker_.come_to(return_key.ret, &start));
  const auto is_large = [&](size_t n) { return masks->level[n]->exits.size() > kManyPlaces; };
  std::vector<const StateMask*> known;
  for (size_t n = return_key.first_end; n < return_key.behind_ends; ++n) {
    if (!is_large(n)) continue;
    GEN_ASSIGN(const StateMask* end, behind_level(entry, return_key, n, *masks, start));
    known.push_back(end);
  }
  maker_.begin();
  const std::span<uint64_t> allowed = maker_.allowed.all();
  std::copy(masks->within[return_key.further].begin(), masks->within[return_key.further].end(),
            allowed.begin());
  maker_.worst = masks->worst + machines_->states[return_key.ret].shortest;
  for (const StateMask* end : known) {
    end->add_to(allowed);
    maker_.worst = std::max(maker_.worst, end->worst);
    exits->insert(exits->end(), end->exits.begin(), end->exits.end());
  }
  for (size_t n = return_key.first_end; n < return_key.behind_ends; ++n) {
    if (is_large(n)) continue;
    const StateMask& level = *masks->level[n];
    if (start.outside) exits->insert(exits->end(), level.exits.begin(), level.exits.end());
    GEN_TRY(maker_.allow_behind(level, maker_.shared(), start, exits));
  }
  return {};
}

Result<const StateMask*> TokenGrammar::behind_level(Entry* entry, const ReturnKey& return_key,
                                                    size_t n, const LoopMasks& masks,
                                                    const MaskMaker::WalkStart& start) const {
  auto known = std::find_if(entry->ends.begin(), entry->ends.end(), [&](const LoopEnds& ends) {
    return ends.machine == return_key.loop_machine && ends.ret == return_key.ret;
  });
  if (known == entry->ends.end()) {
    entry->ends.push_back({return_key.loop_machine, return_key.ret, {}});
    known = entry->ends.end() - 1;
  }
  if (known->level.empty()) known->level.resize(masks.level.size());
  std::shared_ptr<const StateMask>& made = known->level[n];
  if (made == nullptr) {
    const StateMask& level = *masks.level[n];
    std::vector<uint32_t> exits;
    if (start.outside) exits = level.exits;
    maker_.begin();
    GEN_TRY(maker_.allow_behind(level, maker_.shared(), start, &exits));
    made = maker_.finish(std::move(exits));
    statistics_.bytes += made->memory();
  }
  return made.get();
}

Status TokenGrammar::mask_within(ReturnLists& lists, std::span<const Item> items, uint64_t most,
                                 std::span<uint64_t> out) const {
  std::fill(out.begin(), out.end(), 0);
  uint64_t worst = 0;
  GEN_TRY(mask(lists, items, out, &worst));
  if (worst <= most) return {};
  std::fill(out.begin(), out.end(), 0);
  const std::lock_guard lock(mutex_);
  maker_.begin();
  maker_.allow_work();
  const size_t frames = lists.size();
  Step& step = maker_.walk.step;
  for (const Item item : items) {
    for (const TokenEdge& edge : machines_->tokens(item.state)) {
      step.begin();
      step.arrive(lists, edge.target, item.list);
      if (!step.finish(lists, limits_.items)) {
        lists.shrink(frames);
        return maker_.too_much();
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
    if (!whole) {
      for (int32_t twin = token; twin >= 0; twin = vocabulary_->twin(twin))
        maker_.allowed.add(twin);
      return;
    }
    maker_.allowed.add(vocabulary_->tokens_from(place));
  };
  if (!maker_.walk.run(lists, 0, items, limits_.items, maker_.max_work(), visit)) {
    return maker_.too_much();
  }
  std::copy(maker_.allowed.bits().begin(), maker_.allowed.bits().end(), out.begin());
  return {};
}

int32_t TokenGrammar::some_token(uint32_t term) const noexcept {
  if (!machines_->terms[term].negated) return terms_[term].front().low;
  for (int32_t token = 0; token < vocabulary_->size(); ++token) {
    if (matches(term, token)) return token;
  }
  return -1;
}

}  // namespace gen::grammar
