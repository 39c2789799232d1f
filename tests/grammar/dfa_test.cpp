// SPDX-License-Identifier: Apache-2.0
// Automata with like states made one: the same texts, and as few states as pairs of states that
// some text tells apart ask for. Lists of edges, against a vector.
#include "grammar/dfa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

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

// Any automaton over a few bytes, with rings, ends without ways on, and states that nothing needs.
Dfa random_dfa(std::mt19937& random, uint32_t n_states, bool rings) {
  Dfa made;
  for (uint32_t s = 0; s < n_states; ++s) {
    Dfa::State& state = made.states.emplace_back();
    state.final = random() % 4 == 0;
    for (uint32_t low = 'a'; low <= 'e'; ++low) {
      if (random() % 3 == 0) continue;
      const uint32_t high = low + random() % 2;
      uint32_t target = static_cast<uint32_t>(random()) % n_states;
      // Without rings, but for those of a state to itself.
      if (!rings) target = s + static_cast<uint32_t>(random()) % (n_states - s);
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
    const Dfa all = random_dfa(random, 1 + static_cast<uint32_t>(random()) % 14, i % 2 == 0);
    const Dfa least = minimise(all);
    ASSERT_EQ(least.states.size(), fewest_states(all)) << i;
    smaller += least.states.size() < all.states.size() ? 1U : 0U;
    for (int text = 0; text < 60; ++text) {
      uint32_t one = 0;
      uint32_t other = least.empty() ? kNone : 0;
      for (int length = 0; length < 12; ++length) {
        ASSERT_EQ(one != kNone && all.states[one].final,
                  other != kNone && least.states[other].final);
        const auto byte = static_cast<uint8_t>('a' + random() % 6);
        one = step(all, one, byte);
        other = step(least, other, byte);
      }
    }
  }
  EXPECT_GT(smaller, 100U);
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
