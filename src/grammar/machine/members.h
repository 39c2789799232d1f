// SPDX-License-Identifier: Apache-2.0
// Members: machines called in any order with a separator between them, like the members of an
// object. The set of members called so far is a bit set in the frames of the calls, so n members in
// any order take n machines instead of 2^n states.
//
// A member that may occur once, or that is required, has a bit. Repeatable members may share bits,
// each of which some member must set. The number of members, where it is limited and not determined
// by the bits, is stored beside them. A call of a member carries the set including the member. When
// its machine ends, the list may end if all required bits are set, and the separator is called if
// another member can follow. Nothing is called from which no end can be reached.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "grammar/machine/machines.h"
#include "grammar/machine/recogniser.h"

namespace gen::grammar {

/// The members called so far.
struct MembersSeen {
  MemberSet set;
  uint32_t counted = 0;  // for a counted list: their number, as far as it matters
};

inline MembersSeen members_seen(const Frame& frame) noexcept { return {frame.set, frame.low}; }
inline void put_members_seen(const MembersSeen& seen, Frame* frame) noexcept {
  frame->set = seen.set;
  frame->low = seen.counted;
}

inline uint32_t member_count(const Members& members, const MembersSeen& seen) noexcept {
  return members.counted ? seen.counted : seen.set.count();
}

/// Counts above it are equivalent.
inline uint32_t max_counted(const Members& members) noexcept {
  return members.max != kUnbounded ? members.max : members.min;
}

inline MemberSet missing_bits(const Members& members, const MemberSet& set) noexcept {
  return members.required & ~set;
}

/// The shared bits of a set, packed.
inline uint32_t packed_bits(const Members& members, const MemberSet& set) noexcept {
  uint32_t packed = 0;
  uint32_t place = 0;
  for (uint32_t bit = 0; bit < MemberSet::kBits; ++bit) {
    if (!members.shared.has(bit)) continue;
    if (set.has(bit)) packed |= uint32_t{1} << place;
    ++place;
  }
  return packed;
}

/// Minimum number of members that set the missing bits of `set`; kUnbounded: impossible.
inline uint32_t missing_members(const Members& members, const MemberSet& set) noexcept {
  const MemberSet missing = missing_bits(members, set);
  const uint32_t own = (missing & ~members.shared).count();
  const MemberSet shared = missing & members.shared;
  if (shared.none()) return own;
  const uint8_t cover = members.cover[packed_bits(members, shared)];
  return cover == UINT8_MAX ? kUnbounded : own + cover;
}

/// For lists in any order in which each required bit belongs to one member, which occurs once.
inline void find_shortest_of_bits(Members* members) {
  members->shortest_of_bits.clear();
  if (members->in_order || members->required.none()) return;
  std::array<uint64_t, MemberSet::kBits> of_bit{};
  MemberSet met;
  for (const Members::Member& member : members->list) {
    if ((member.bits & members->required).none()) continue;
    if (!member.once || member.bits.count() != 1 || !(met & member.bits).none()) return;
    met |= member.bits;
    member.bits.each([&](uint32_t bit) { of_bit[bit] = member.shortest; });
  }
  if (met != members->required) return;
  uint32_t end = 0;
  met.each([&](uint32_t bit) { end = bit + 1; });
  for (uint32_t first = 0; first < end; first += 4) {
    for (uint32_t bits = 0; bits < 16; ++bits) {
      uint64_t sum = 0;
      for (uint32_t k = 0; k < 4; ++k) sum += (bits >> k & 1) * of_bit[first + k];
      members->shortest_of_bits.push_back(sum);
    }
  }
}

/// Computes `shortest_of_bits`, `shared` and `cover` from the list and the required bits.
inline void find_cover(Members* members) {
  find_shortest_of_bits(members);
  members->shared = {};
  for (const Members::Member& member : members->list) {
    if (!member.once) members->shared |= member.bits;
  }
  const uint32_t all = packed_bits(*members, members->shared);
  members->cover.assign(size_t{all} + 1, UINT8_MAX);
  members->cover[0] = 0;
  for (uint32_t set = 1; set <= all; ++set) {
    for (const Members::Member& member : members->list) {
      const uint32_t bits = member.once ? 0 : packed_bits(*members, member.bits);
      const uint8_t rest = members->cover[set & ~bits];
      if ((set & bits) == 0 || rest == UINT8_MAX) continue;
      members->cover[set] = std::min<uint8_t>(members->cover[set], rest + 1);
    }
  }
}

/// Whether the list may end here.
inline bool members_complete(const Members& members, const MembersSeen& seen) noexcept {
  if (!missing_bits(members, seen.set).none()) return false;
  return members.min <= 1 || member_count(members, seen) >= members.min;
}

/// Adds a member; false if it cannot be called.
inline bool add_member(const Members& members, const Members::Member& member,
                       MembersSeen* seen) noexcept {
  if (member.once && !(seen->set & member.bits).none()) return false;
  const MemberSet with = seen->set | member.bits;
  if (members.in_order) {
    if (!(member.before & ~seen->set).none() || !(member.after & seen->set).none()) return false;
    if (members.min > 1 && member.further != kUnbounded &&
        member_count(members, *seen) + uint64_t{1} + member.further < members.min) {
      return false;
    }
  }
  if (members.max != kUnbounded &&
      member_count(members, *seen) + uint64_t{1} + missing_members(members, with) > members.max) {
    return false;
  }
  seen->set = with;
  if (members.counted) {
    if (seen->counted < max_counted(members)) ++seen->counted;
  }
  return true;
}

/// Whether a member can follow.
inline bool member_can_follow(const Members& members, const MembersSeen& seen) noexcept {
  return std::any_of(members.list.begin(), members.list.end(), [&](const auto& member) {
    MembersSeen copy = seen;
    return add_member(members, member, &copy);
  });
}

/// Minimum number of bytes of the missing members, each with a separator. `*looked`, if given,
/// grows by the number of examined members.
inline uint64_t missing_length(const Members& members, MembersSeen seen,
                               uint64_t* looked = nullptr) noexcept {
  if (members_complete(members, seen)) return 0;
  if (looked != nullptr) *looked += members.list.size();
  uint64_t length = 0;
  const auto take = [&](const Members::Member& member) {
    if (!add_member(members, member, &seen)) return false;
    length += member.shortest;
    return true;
  };
  if (!members.shortest_of_bits.empty()) {
    const MemberSet missing = missing_bits(members, seen.set);
    for (uint32_t i = 0; i < members.shortest_of_bits.size() / 16; ++i) {
      length += members.shortest_of_bits[16 * i + missing.four(i)];
    }
    seen.set |= missing;
    if (members.counted)
      seen.counted = std::min(seen.counted + missing.count(), max_counted(members));
  } else {
    for (const Members::Member& member : members.list) {
      if (!(missing_bits(members, seen.set) & member.bits).none()) take(member);
    }
  }
  if (members.in_order) {
    // A member before one that was called cannot be called any more.
    for (const Members::Member& member : members.list) {
      while (!members_complete(members, seen) && take(member) && !member.once) {
      }
    }
    return length;
  }
  // Shortest first; a member that cannot be called now cannot be called later.
  for (const Members::Member& member : members.list) {
    if (members_complete(members, seen)) break;
    if (!take(member) || member.once || !members.counted) continue;
    if (members_complete(members, seen)) break;
    // It can be repeated as often as members are missing.
    const uint64_t lacking = members.min - seen.counted;
    length += lacking * member.shortest;
    seen.counted = members.min;
  }
  return length;
}

/// Whether all required members can be called at all.
inline bool members_possible(const Members& members) noexcept {
  MemberSet bits;
  uint64_t most = 0;
  for (const Members::Member& member : members.list) {
    bits |= member.bits;
    most += member.once ? 1 : kUnbounded;
  }
  if (members.list.empty() || !(members.required & ~bits).none()) return false;
  return most >= members.min && members.min <= members.max &&
         missing_members(members, {}) <= members.max;
}

}  // namespace gen::grammar
