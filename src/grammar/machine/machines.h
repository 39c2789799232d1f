// SPDX-License-Identifier: Apache-2.0
// Machines: a compiled grammar. Every called rule, and every counted body, is a machine: an
// automaton over bytes, tokens and calls of machines. Made by machine_builder.h, run by
// recogniser.h.
//
// Invariants that the recogniser relies on:
// - No machine accepts the empty text: no edge leads to its start, and its start is not final.
//  Where a callee is nullable, the caller has a path around the call.
// - No machine can call itself before a byte has been read: `order` rises from caller to callee
//  along calls from starts. Left recursion was turned into loops (left_recursion.h).
// - From every reachable state an end can be reached: what has been read so far can always become
//  a member.
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

inline constexpr StateId kEnd = 0;      // after the whole grammar
inline constexpr StateId kOutside = 1;  // after the known states, see token_grammar.h
inline constexpr uint32_t kFirstState = 2;
inline constexpr uint32_t kFar = UINT32_MAX;  // no end can be reached

struct CallEdge {
  uint32_t machine;
  StateId target;
  uint32_t loop;  // 0: called once
  // A tail call: whatever would follow here may also follow the end of the callee.
  bool hand_over = false;
};

struct TokenEdge {
  uint32_t term;
  StateId target;
};

/// A machine called repeatedly, `min` (at least 1) to `max` times. For members (members.h),
/// `machine` is the separator's; two loops are adjacent, one for calls of members, one for calls of
/// the separator. Limited: a machine called once that visits its counted states at most `max`
/// times; frames of the call hold the number of visits (Frame::low).
struct Loop {
  uint32_t machine = 0;
  uint32_t min = 1;
  uint32_t max = 1;
  uint32_t members = 0;  // 0: none
  bool separator = false;
  bool limited = false;
  uint32_t farthest = 0;  // limited: the maximum of Machines::fewest over the machine's states
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
  std::vector<Member> list;  // those that can be completed, shortest first, or in their required
                             // order
  bool in_order = false;
  MemberSet required;
  uint32_t min = 1;
  uint32_t max = kUnbounded;
  uint32_t separator = 0;
  uint32_t separator_shortest = 0;
  // Sums of the lengths of the members of required bits, for all combinations of four bits. Empty
  // if a bit belongs to several members, or the members are in order.
  std::vector<uint64_t> shortest_of_bits;
  MemberSet shared;  // bits of members that may be repeated
  // Minimum number of members that set a combination of shared bits, by set (packed_bits()).
  std::vector<uint8_t> cover;
  bool counted = false;  // the number of members is limited, and not determined by the bits
};

/// How limits affect a state.
enum class Limit : uint8_t {
  kNone,
  kInside,   // a limited machine calls its machine, directly or not
  kLimited,  // its machine is limited
  kCounted,  // ... and it counts visits of this state
};

struct State {
  uint32_t bytes = 0;  // where its edges begin; they end where the next state's do
  uint32_t calls = 0;
  uint32_t tokens = 0;
  uint32_t shortest = kFar;  // minimum bytes and tokens to its machine's end
  bool final = false;
  bool simple = false;  // no calls, one transition per byte
  bool reads = false;   // has edges for bytes or tokens
  Limit limit = Limit::kNone;
};

struct Machines {
  std::vector<State> states;  // one more than there are, as a sentinel
  std::vector<ByteEdge> byte_edges;
  std::vector<CallEdge> call_edges;
  std::vector<TokenEdge> token_edges;
  std::vector<Loop> loops;       // [0] means none
  std::vector<Members> members;  // [0] means none
  std::vector<StateId> starts;   // by machine
  std::vector<uint32_t> order;   // by machine
  // By state of a limited machine: the minimum number of visits of counted states from there to its
  // end. Empty if no machine is limited.
  std::vector<uint32_t> fewest;
  /// A path to an end of a limited machine with that many visits of counted states.
  struct LimitedPath {
    uint32_t counted;
    uint32_t bytes;
    std::strong_ordering operator<=>(const LimitedPath&) const = default;
  };
  // For states from which more counted states allow a shorter text: paths with increasing counts
  // and decreasing bytes. From all other states the path with the fewest counted states is also the
  // shortest.
  std::unordered_map<StateId, std::vector<LimitedPath>> mixed;
  std::vector<TokenTerm> terms;  // of token edges
  uint32_t root = 0;
  bool root_matches = false;  // anything but the empty text
  bool root_empty = false;    // the empty text
  JsonRules json;             // the rules that its texts follow beside the grammar
  Endless endless;            // used if items are among them

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
