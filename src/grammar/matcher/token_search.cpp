// SPDX-License-Identifier: Apache-2.0
// The minimum number of tokens to the end, see token_search.h.
#include "grammar/matcher/token_search.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "grammar/mask/trie_walk.h"

namespace gen::grammar {
namespace {

constexpr size_t kMaxPlaces = 4096;                        // per number of tokens
constexpr uint64_t kMaxBytesOfTexts = uint64_t{1} << 14U;  // of texts examined per mask
constexpr uint64_t kWorkOfItem = 16;                       // per visited item, in trie nodes

// A byte, or a token by name as -1 - its id.
using Unit = int32_t;

// Steps along a shortest path; of several bytes the smallest, bytes before tokens.
class TokenWay {
 public:
  TokenWay(const TokenGrammar& grammar, ReturnLists& lists, std::span<const Item> items)
      : grammar_(grammar),
        machines_(grammar.machines()),
        lists_(lists),
        step_(machines_),
        items_(items.begin(), items.end()),
        left_(shortest(machines_, lists, items)) {}

  [[nodiscard]] uint64_t left() const noexcept { return left_; }

  /// False if the limits leave no path.
  bool next(Unit* unit) {
    for (uint32_t low = 0; low < 256;) {
      uint32_t above = 256;
      bool possible = false;
      for (const Item item : items_) {
        const uint64_t here = shortest(machines_, lists_, item);
        for (const ByteEdge& edge : machines_.bytes(item.state)) {
          if (edge.low > low) above = std::min<uint32_t>(above, edge.low);
          if (edge.high < low || edge.low > low) continue;
          possible |= here == left_;
          above = std::min<uint32_t>(above, edge.high + 1U);
        }
        ++looked_at_;
      }
      if (looked_at_ + step_.work() > grammar_.limits().work) return false;
      if (possible) {
        step_.begin();
        step_.read(lists_, items_, static_cast<uint8_t>(low));
        if (arrive()) {
          *unit = static_cast<Unit>(low);
          return true;
        }
      }
      low = above;
    }
    for (size_t i = 0; i < items_.size(); ++i) {
      for (const TokenEdge& edge : machines_.tokens(items_[i].state)) {
        const int32_t token = grammar_.some_token(edge.term);
        if (token < 0) continue;
        step_.begin();
        step_.arrive(lists_, edge.target, items_[i].list);
        if (arrive()) {
          *unit = -1 - token;
          return true;
        }
      }
    }
    return false;
  }

 private:
  // Whether the step came closer to the end.
  bool arrive() {
    const size_t frames = lists_.size();
    if (step_.finish(lists_, grammar_.limits().items)) {
      const uint64_t behind =
          least_behind(machines_, lists_, {step_.items(), step_.ended(), false});
      if (behind + 1 == left_) {
        items_.assign(step_.items().begin(), step_.items().end());
        left_ = behind;
        return true;
      }
    }
    lists_.shrink(frames);
    return false;
  }

  const TokenGrammar& grammar_;
  const Machines& machines_;
  ReturnLists& lists_;
  Step step_;
  std::vector<Item> items_;
  uint64_t left_;
  uint64_t looked_at_ = 0;  // items, in addition to those that the step visits
};

}  // namespace

FewestTokens shortest_text(const TokenGrammar& grammar, ReturnLists& lists,
                           std::span<const Item> items, uint64_t max_bytes) {
  const size_t frames = lists.size();
  std::vector<Unit> units;
  TokenWay way(grammar, lists, items);
  if (way.left() > max_bytes) return {};
  for (Unit unit = 0; way.left() > 0; units.push_back(unit)) {
    if (!way.next(&unit)) break;
  }
  const bool arrived = way.left() == 0;
  lists.shrink(frames);
  if (!arrived) return {};

  // From the end: the minimum number of tokens for the rest, and the first of them.
  std::vector<FewestTokens> from(units.size() + 1);
  from.back().tokens = 0;
  const Vocabulary& vocabulary = grammar.vocabulary();
  const auto trie = vocabulary.trie();
  for (size_t at = units.size(); at-- > 0;) {
    if (units[at] < 0) {
      if (from[at + 1].tokens != kNoWay)
        from[at] = {from[at + 1].tokens + 1, false, -1 - units[at]};
      continue;
    }
    uint32_t node = 0;
    for (size_t end = at; end < units.size() && units[end] >= 0; ++end) {
      node = vocabulary.child(node, static_cast<uint8_t>(units[end]));
      if (node == 0) break;
      const uint64_t rest = from[end + 1].tokens;
      if (trie[node].token >= 0 && rest != kNoWay && rest + 1 < from[at].tokens) {
        from[at] = {rest + 1, false, trie[node].token};
      }
    }
  }
  return from[0];
}

namespace {

struct SearchNode {
  ReturnLists lists;
  std::vector<Item> items;
  int32_t first;
};

std::string key_of(const SearchNode& node) {
  std::string key;
  const auto add = [&](uint64_t word) { key.append(reinterpret_cast<const char*>(&word), 8); };
  for (const Item item : node.items) add(static_cast<uint64_t>(item.state) << 32 | item.list);
  add(UINT64_MAX);
  for (ListId id = 0; id < node.lists.size(); ++id) {
    const Frame& frame = node.lists.at(id);
    add(static_cast<uint64_t>(frame.ret) << 32 | frame.parent);
    add(static_cast<uint64_t>(frame.low) << 32 | frame.high);
    add(static_cast<uint64_t>(frame.loop) << 32 | frame.next);
    if (frame.loop == 0) continue;
    for (const uint64_t word : frame.set.words()) add(word);
  }
  return key;
}

// Breadth-first search over all token sequences.
class Search {
 public:
  Search(const TokenGrammar& grammar, uint64_t work)
      : grammar_(grammar),
        machines_(grammar.machines()),
        walk_(machines_, grammar.vocabulary()),
        left_(work) {}

  FewestTokens run(const ReturnLists& lists, std::span<const Item> items, FewestTokens known) {
    std::vector<SearchNode> open;
    open.push_back({lists, {items.begin(), items.end()}, -1});
    open[0].lists.compact(0, open[0].items);
    (void)known_.insert(key_of(open[0]));
    for (uint64_t tokens = 1; tokens < known.tokens; ++tokens) {
      if (open.empty()) break;
      next_.clear();
      for (SearchNode& node : open) {
        last_round_ = tokens + 1 >= known.tokens;
        if (!expand(node)) return known;
        if (found_) return {tokens, true, found_first_};
      }
      std::swap(open, next_);
    }
    known.exact = true;
    return known;
  }

 private:
  // False if a limit is reached.
  bool expand(SearchNode& from) {
    const Vocabulary& vocabulary = grammar_.vocabulary();
    simple_.clear();
    const size_t frames = from.lists.size();
    bool within = true;
    for (const Item item : std::vector<Item>(from.items)) {
      for (const TokenEdge& edge : machines_.tokens(item.state)) {
        const int32_t token = grammar_.some_token(edge.term);
        if (token < 0 || found_) continue;
        walk_.step.begin();
        walk_.step.arrive(from.lists, edge.target, item.list);
        if (!walk_.step.finish(from.lists, grammar_.limits().items)) return false;
        within &= add(from, frames, token, {walk_.step.items(), walk_.step.ended(), false});
        from.lists.shrink(frames);
      }
    }
    const auto trie = vocabulary.trie();
    const auto visit = [&](uint32_t node, const Behind& behind, bool whole) {
      if (left_ > 0) --left_;
      const int32_t token = whole ? vocabulary.tokens_from(node)[0] : trie[node].token;
      if (token < 0 || found_ || !within) return;
      within &= add(from, frames, token, behind);
    };
    const uint64_t before = walk_.step.work();
    if (found_ || !within) return within;
    const bool walked = walk_.run(from.lists, 0, from.items, grammar_.limits().items,
                                  before + left_ / kWorkOfItem, visit);
    left_ -= std::min(left_, kWorkOfItem * (walk_.step.work() - before));
    return found_ || (walked && within && left_ > 0);
  }

  bool add(const SearchNode& from, size_t frames, int32_t token, const Behind& behind) {
    const int32_t first = from.first < 0 ? token : from.first;
    if (behind.ended) {
      found_ = true;
      found_first_ = first;
      return true;
    }
    if (last_round_ || behind.items.empty()) return true;
    const auto old = [&](Item item) { return item.list < frames; };
    if (std::all_of(behind.items.begin(), behind.items.end(), old)) {
      const Item item = behind.items[0];
      const uint64_t word = static_cast<uint64_t>(item.state) << 32 | item.list;
      // Most one-token texts lead to few distinct states.
      if (behind.items.size() == 1 && !simple_.insert(word).second) return true;
    }
    SearchNode made = {from.lists, {behind.items.begin(), behind.items.end()}, first};
    made.lists.compact(0, made.items);
    const uint64_t cost = 4 * from.lists.size() + 512;  // of the copy and its key, in trie nodes
    if (left_ < cost || next_.size() >= kMaxPlaces) return false;
    left_ -= cost;
    if (known_.insert(key_of(made)).second) next_.push_back(std::move(made));
    return true;
  }

  const TokenGrammar& grammar_;
  const Machines& machines_;
  TrieWalk walk_;
  uint64_t left_;
  std::vector<SearchNode> next_;
  std::set<std::string> known_;
  std::unordered_set<uint64_t> simple_;
  bool last_round_ = false;
  bool found_ = false;
  int32_t found_first_ = -1;
};

// Whether the shortest texts after a token take few tokens.
class Fitting {
 public:
  Fitting(const TokenGrammar& grammar, uint64_t most) : grammar_(grammar), most_(most) {}

  bool fits(const ReturnLists& lists, size_t frames, const Behind& behind) {
    const uint64_t bytes = least_behind(grammar_.machines(), lists, behind);
    if (bytes <= most_) return true;
    // Most one-token texts lead to few distinct states.
    if (std::equal(last_.begin(), last_.end(), behind.items.begin(), behind.items.end())) {
      return last_fits_;
    }
    const std::vector<Item> items(behind.items.begin(), behind.items.end());
    const bool stays = std::all_of(items.begin(), items.end(),
                                   [&](const Item& item) { return item.list < frames; });
    if (stays) {
      const auto known = known_.find(items);
      if (known != known_.end()) {
        last_ = items;
        return last_fits_ = known->second;
      }
    }
    if (bytes > left_) return false;
    left_ -= bytes;
    ReturnLists copy = lists;
    const bool made = shortest_text(grammar_, copy, items, bytes).tokens <= most_;
    if (stays) {
      known_.emplace(items, made);
      last_ = items;
      last_fits_ = made;
    }
    return made;
  }

 private:
  struct Before {
    bool operator()(const std::vector<Item>& a, const std::vector<Item>& b) const {
      return std::lexicographical_compare(
          a.begin(), a.end(), b.begin(), b.end(), [](const Item& x, const Item& y) {
            return std::pair(x.state, x.list) < std::pair(y.state, y.list);
          });
    }
  };
  const TokenGrammar& grammar_;
  const uint64_t most_;
  uint64_t left_ = kMaxBytesOfTexts;
  std::map<std::vector<Item>, bool, Before> known_;
  std::vector<Item> last_;  // of known_; usually those of the previous node
  bool last_fits_ = false;
};

}  // namespace

bool add_fitting_tokens(const TokenGrammar& grammar, ReturnLists& lists,
                        std::span<const Item> items, uint64_t most, std::span<uint64_t> bits) {
  const Vocabulary& vocabulary = grammar.vocabulary();
  const auto trie = vocabulary.trie();
  const size_t frames = lists.size();
  Fitting fitting(grammar, most);
  const auto add = [&](int32_t token) {
    bits[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
  };
  TrieWalk walk(grammar.machines(), vocabulary);
  return walk.run(lists, 0, items, grammar.limits().items, grammar.limits().work,
                  [&](uint32_t node, const Behind& behind, bool whole) {
                    const int32_t token = trie[node].token;
                    if ((token < 0 && !whole) || !fitting.fits(lists, frames, behind)) return;
                    if (whole) {
                      for (const int32_t one : vocabulary.tokens_from(node)) add(one);
                      return;
                    }
                    for (int32_t twin = token; twin >= 0; twin = vocabulary.twin(twin)) add(twin);
                  });
}

FewestTokens fewest_tokens(const TokenGrammar& grammar, const ReturnLists& lists,
                           std::span<const Item> items, FewestTokens known, uint64_t work) {
  return Search(grammar, work).run(lists, items, known);
}

}  // namespace gen::grammar
