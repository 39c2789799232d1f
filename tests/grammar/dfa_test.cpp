// SPDX-License-Identifier: Apache-2.0
// Automata with like states made one: the same texts, and as few states as pairs of states that
// some text tells apart ask for. Lists of edges, against a vector.
#include "grammar/expression/dfa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grammar/schema/string_dfa.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

uint32_t step(const Dfa& dfa, uint32_t state, uint8_t byte) {
  if (state == kNone) return kNone;
  for (const ByteEdge& edge : dfa.states[state].edges) {
    if (edge.low <= byte && byte <= edge.high) return edge.target;
  }
  return kNone;
}

enum class Shape { kRings, kSelf, kLadder };

// Any automaton over a few bytes, with ends without ways on and states that nothing needs: with
// rings; with those of a state to itself alone; or with few ways, a few states further each, so
// that many states are alike.
Dfa random_dfa(std::mt19937& random, uint32_t n_states, Shape shape) {
  Dfa made;
  for (uint32_t s = 0; s < n_states; ++s) {
    Dfa::State& state = made.states.emplace_back();
    state.final = random() % 4 == 0;
    const uint32_t last = shape == Shape::kLadder ? 'b' : 'e';
    for (uint32_t low = 'a'; low <= last; ++low) {
      if (random() % 3 == 0) continue;
      const uint32_t high = shape == Shape::kLadder ? low : low + random() % 2;
      const auto any = static_cast<uint32_t>(random());
      uint32_t target = any % n_states;
      if (shape == Shape::kSelf) target = s + any % (n_states - s);
      if (shape == Shape::kLadder) target = std::min(n_states - 1, s + 1 + any % 4);
      state.edges.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high), target});
      low = high;
    }
  }
  return made;
}

// How many states the texts take: pairs are told apart round by round; what leads nowhere is none.
size_t fewest_states(const Dfa& dfa) {
  const size_t count = dfa.states.size();
  std::vector<size_t> block(count + 1, 0);  // the last: no state
  for (size_t s = 0; s < count; ++s) block[s] = dfa.states[s].final ? 1 : 0;
  const auto block_of = [&](uint32_t state) { return block[state == kNone ? count : state]; };
  for (size_t round = 0; round <= count; ++round) {
    std::vector<std::vector<size_t>> seen;
    std::vector<size_t> next(count + 1);
    for (size_t s = 0; s <= count; ++s) {
      std::vector<size_t> key = {block[s]};
      for (uint8_t byte = 'a'; byte <= 'f'; ++byte) {
        key.push_back(block_of(step(dfa, s == count ? kNone : static_cast<uint32_t>(s), byte)));
      }
      size_t at = 0;
      while (at < seen.size() && seen[at] != key) ++at;
      if (at == seen.size()) seen.push_back(std::move(key));
      next[s] = at;
    }
    block = std::move(next);
  }
  std::vector<bool> reached(count, false);
  std::vector<uint32_t> open = {0};
  reached[0] = true;
  std::vector<bool> kept(count + 1, false);
  while (!open.empty()) {
    const uint32_t state = open.back();
    open.pop_back();
    if (block[state] != block[count]) kept[block[state]] = true;
    for (const ByteEdge& edge : dfa.states[state].edges) {
      if (!reached[edge.target]) open.push_back(edge.target);
      reached[edge.target] = true;
    }
  }
  return static_cast<size_t>(std::count(kept.begin(), kept.end(), true));
}

TEST(Dfa, MinimisedHasTheSameTextsAndNoStateTooMany) {
  std::mt19937 random(11);
  size_t smaller = 0;
  for (int i = 0; i < 400; ++i) {
    const auto shape = static_cast<Shape>(i % 3);
    const uint32_t most = shape == Shape::kLadder ? 40 : 14;
    const Dfa all = random_dfa(random, 1 + static_cast<uint32_t>(random()) % most, shape);
    const Dfa least = minimise(all);
    ASSERT_EQ(least.states.size(), fewest_states(all)) << i;
    smaller += least.states.size() < all.states.size() ? 1U : 0U;
    for (int text = 0; text < 60; ++text) {
      uint32_t one = 0;
      uint32_t other = least.empty() ? kNone : 0;
      for (int length = 0; length < 12; ++length) {
        ASSERT_EQ(one != kNone && all.states[one].final,
                  other != kNone && least.states[other].final);
        const auto byte = static_cast<uint8_t>('a' + random() % (shape == Shape::kLadder ? 2 : 6));
        one = step(all, one, byte);
        other = step(least, other, byte);
      }
    }
  }
  EXPECT_GT(smaller, 100U);
}

// A state for each count is what lengths take, and as many as there may be.
TEST(Dfa, LengthsTakeAStateForEachCount) {
  Dfa ring;  // (abc)*
  for (uint32_t s = 0; s < 3; ++s) {
    ring.states.emplace_back().final = s == 0;
    const auto byte = static_cast<uint8_t>('a' + s);
    ring.states[s].edges.push_back({byte, byte, (s + 1) % 3});
  }
  for (const Dfa& strings : {any_string(), ring}) {
    for (const uint32_t longest : {0U, 1U, 2U, 3U, 7U, 60U, 63U, 64U, 66U, 300U}) {
      DfaFuel fuel;
      const auto all = with_length(strings, {0, longest}, fuel);
      ASSERT_TRUE(all.ok());
      const size_t count = all.value().states.size();
      // Of the ring one state at each place, up to where it ends for the last time; of characters
      // those within one, too, of which the last place has the end alone.
      const size_t wanted = strings.states.size() == 3 ? longest / 3 * 3 + 1 : 8 * longest + 1;
      EXPECT_EQ(count, wanted) << longest;
      fuel.states = (count + 3) / 4;
      EXPECT_TRUE(with_length(strings, {0, longest}, fuel).ok()) << longest;
      if (fuel.states == 1) continue;
      --fuel.states;
      EXPECT_FALSE(with_length(strings, {0, longest}, fuel).ok()) << longest;
    }
  }
}

TEST(Dfa, FewTextsAreListed) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::set<std::string> texts;
    const size_t count = 1 + random() % 40;
    while (texts.size() < count) {
      std::string text;
      for (size_t n = random() % 5; n > 0; --n) text += static_cast<char>('a' + random() % 4);
      texts.insert(text);
    }
    const Dfa dfa = string_set(std::vector<std::string>(texts.begin(), texts.end()));
    std::vector<std::string> found;
    ASSERT_TRUE(finite_strings(dfa, count, &found));
    EXPECT_EQ(found.size(), count);
    EXPECT_EQ(std::set<std::string>(found.begin(), found.end()), texts);
    std::vector<std::string> less;
    EXPECT_FALSE(finite_strings(dfa, count - 1, &less)) << count;
  }
  Dfa endless;
  endless.states.resize(2);
  endless.states[0].edges.push_back({'a', 'b', 1});
  endless.states[1].edges.push_back({'b', 'b', 0});
  endless.states[1].final = true;
  std::vector<std::string> found;
  EXPECT_FALSE(finite_strings(endless, 1'000, &found));
}

TEST(EdgeList, IsWhatAVectorIs) {
  std::mt19937 random(3);
  const auto same = [](const EdgeList& list, const std::vector<ByteEdge>& vector) {
    return list.size() == vector.size() && list.empty() == vector.empty() &&
           std::equal(list.begin(), list.end(), vector.begin(), vector.end());
  };
  for (int round = 0; round < 200; ++round) {
    EdgeList list;
    std::vector<ByteEdge> vector;
    for (int i = 0; i < 30; ++i) {
      const ByteEdge edge = {static_cast<uint8_t>(random() % 4 + 4 * static_cast<unsigned>(i)),
                             static_cast<uint8_t>(4 * i + 3), static_cast<uint32_t>(random()) % 3};
      switch (random() % 8) {
        case 0:
          if (!vector.empty()) {
            list.pop_back();
            vector.pop_back();
          }
          break;
        case 1: {
          EdgeList copy = list;
          list = EdgeList();
          list = copy;
          break;
        }
        case 2: {
          EdgeList moved = std::move(list);
          EdgeList other;
          for (int k = 0; k < 7; ++k) other.push_back(edge);
          other = std::move(moved);
          list = std::move(other);
          break;
        }
        case 3:
          list.shrink(vector.size() / 2);
          vector.resize(vector.size() / 2);
          break;
        case 4:
          list.assign(vector);
          break;
        case 5:
          list.add(edge);
          if (!vector.empty() && vector.back().target == edge.target &&
              vector.back().high + 1 == edge.low) {
            vector.back().high = edge.high;
          } else {
            vector.push_back(edge);
          }
          break;
        default:
          list.push_back(edge);
          vector.push_back(edge);
          if (random() % 2 == 0) {
            list.push_back(list[0]);
            vector.push_back(ByteEdge(vector[0]));
          }
      }
      ASSERT_TRUE(same(list, vector));
      if (!vector.empty()) {
        ASSERT_EQ(list.back(), vector.back());
      }
    }
  }
}

}  // namespace
}  // namespace gen::grammar
