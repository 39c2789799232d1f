// SPDX-License-Identifier: Apache-2.0
// Machines: a compiled grammar. Every rule that is called, and every body that is counted, is a
// machine: an automaton over bytes, tokens and calls of machines. Made by machine_builder.h, run by
// recogniser.h.
//
// What holds for all of them, and what the recogniser relies on:
// - No machine accepts the empty text: nothing leads to its start, and its start is not final.
//   Where a callee may be empty, the caller has a way around the call.
// - No machine can call itself before a byte was read: `order` rises from caller to callee along
//   calls from starts. Left recursion was turned into loops (left_recursion.h).
// - From every state that something leads to, an end can be reached: what has been read so far can
//   always become a member.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/base/byte_edge.h"
#include "grammar/machine/endless.h"
#include "grammar/expression/expression.h"
#include "grammar/json/json_text.h"

namespace gen::grammar {

using StateId = uint32_t;

inline constexpr StateId kEnd = 0;      // behind the whole grammar
inline constexpr StateId kOutside = 1;  // behind what is known, see token_grammar.h
inline constexpr uint32_t kFirstState = 2;
inline constexpr uint32_t kFar = UINT32_MAX;  // no end can be reached

struct CallEdge {
  uint32_t machine;
  StateId target;
  uint32_t loop;  // 0: once
  // Its machine may end where the caller does: what would follow here can as well follow there.
  bool hand_over = false;
};

struct TokenEdge {
  uint32_t term;
  StateId target;
};

/// A machine called again and again, `min` (at least 1) to `max` times. Of members (members.h):
/// `machine` is the separator's; two loops stand side by side, one for calls of members, one for
/// calls of the separator. Limited: a machine called once that comes to its counted states at most
/// `max` times; frames of the call tell how often it has (Frame::low).
struct Loop {
  uint32_t machine = 0;
  uint32_t min = 1;
  uint32_t max = 1;
  uint32_t members = 0;  // 0: none
  bool separator = false;
  bool limited = false;
  uint32_t farthest = 0;  // limited: the most that Machines::fewest is of a state of the machine
  bool operator==(const Loop&) const = default;
};

/// Machines called in any order, see members.h.
struct Members {
  struct Member {
    uint32_t machine = 0;
    MemberSet bits;
    bool once = true;
    uint32_t shortest = kFar;       // with a separator
    MemberSet before;               // what must have been called before it, if in_order
    MemberSet after;                // what must not
    uint32_t further = kUnbounded;  // how many can follow it, if in_order
  };
  std::vector<Member> list;  // those that can be finished, shortest first, or as they must come
  bool in_order = false;
  MemberSet required;
  uint32_t min = 1;
  uint32_t max = kUnbounded;
  uint32_t separator = 0;
  uint32_t separator_shortest = 0;
  // Of the members of required bits, by four bits: all sums. None where a bit is not that of one
  // member alone, or they are in order.
  std::vector<uint64_t> shortest_of_bits;
  MemberSet shared;  // bits of members that may come again
  // How many members it takes at least to put in a set of shared bits, by set (packed_bits()).
  std::vector<uint8_t> cover;
  bool counted = false;  // how many there are is limited, and the bits do not tell it
};

/// What limits have to do with a state.
enum class Limit : uint8_t {
  kNone,
  kInside,   // its machine is called by one that is limited, directly or not
  kLimited,  // its machine is limited
  kCounted,  // ... and it counts how often a text comes there
};

struct State {
  uint32_t bytes = 0;  // where its edges begin; they end where the next state's do
  uint32_t calls = 0;
  uint32_t tokens = 0;
  uint32_t shortest = kFar;  // fewest bytes and tokens to its machine's end
  bool final = false;
  bool simple = false;  // does not call, one way for each byte
  bool reads = false;   // has edges for bytes or tokens
  Limit limit = Limit::kNone;
};

struct Machines {
  std::vector<State> states;  // one more than there are
  std::vector<ByteEdge> byte_edges;
  std::vector<CallEdge> call_edges;
  std::vector<TokenEdge> token_edges;
  std::vector<Loop> loops;       // [0] stands for none
  std::vector<Members> members;  // [0] stands for none
  std::vector<StateId> starts;   // by machine
  std::vector<uint32_t> order;   // by machine
  // By state of a limited machine: how often a text comes to counted states from there to its end,
  // at least. Empty if no machine is limited.
  std::vector<uint32_t> fewest;
  /// To an end of a limited machine: a text that comes to counted states so often.
  struct Way {
    uint32_t counted;
    uint32_t bytes;
    std::strong_ordering operator<=>(const Way&) const = default;
  };
  // Of states from which more counted states make a shorter text: each with fewer bytes than those
  // of fewer. From all others the text of the fewest is the shortest, too.
  std::unordered_map<StateId, std::vector<Way>> mixed;
  std::vector<TokenTerm> terms;  // of token edges
  uint32_t root = 0;
  bool root_matches = false;  // anything but the empty text
  bool root_empty = false;    // the empty text
  JsonRules json;             // what its texts follow beside the grammar
  Endless endless;            // if items are among that

  [[nodiscard]] std::span<const ByteEdge> bytes(StateId s) const noexcept {
    return {byte_edges.data() + states[s].bytes, byte_edges.data() + states[s + 1].bytes};
  }
  [[nodiscard]] std::span<const CallEdge> calls(StateId s) const noexcept {
    return {call_edges.data() + states[s].calls, call_edges.data() + states[s + 1].calls};
  }
  [[nodiscard]] std::span<const TokenEdge> tokens(StateId s) const noexcept {
    return {token_edges.data() + states[s].tokens, token_edges.data() + states[s + 1].tokens};
  }
  [[nodiscard]] uint32_t shortest(uint32_t machine) const noexcept {
    return states[starts[machine]].shortest;
  }
  [[nodiscard]] bool matches() const noexcept { return root_matches || root_empty; }
  [[nodiscard]] size_t memory() const noexcept {
    return states.capacity() * sizeof(State) + byte_edges.capacity() * sizeof(ByteEdge) +
           call_edges.capacity() * sizeof(CallEdge) + token_edges.capacity() * sizeof(TokenEdge) +
           loops.capacity() * sizeof(Loop) + starts.capacity() * 8 + fewest.capacity() * 4;
  }
};

}  // namespace gen::grammar
