// SPDX-License-Identifier: Apache-2.0
// Members: machines called in any order with a separator between them, as the members of an object
// are. Which have been called is a set of 64 bits that travels in the frames of the calls (`low` and
// `high`), so n members in any order take n machines and not 2^n states.
//
// A member that may come once, or that is required, has a bit; one that may come again may share bits
// with others, of which each must be put in by some member. The count of members, where it is
// limited and not known from the bits, stands above them. A call of a member carries the set with
// the member in it; when its machine ends, the whole may end if all required bits are there, and the
// separator is called if another member can follow. Nothing is called behind which there is no end.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "grammar/machines.h"
#include "grammar/recogniser.h"

namespace gen::grammar {

using MemberSet = uint64_t;

inline MemberSet member_set(const Frame& frame) noexcept {
  return static_cast<uint64_t>(frame.high) << 32 | frame.low;
}
inline void put_member_set(MemberSet set, Frame* frame) noexcept {
  frame->low = static_cast<uint32_t>(set);
  frame->high = static_cast<uint32_t>(set >> 32);
}

/// How many there are, as far as that matters.
inline uint32_t member_count(const Members& members, MemberSet set) noexcept {
  if (members.count_shift >= 64) return static_cast<uint32_t>(std::popcount(set));
  return static_cast<uint32_t>(set >> members.count_shift);
}

inline MemberSet missing_bits(const Members& members, MemberSet set) noexcept {
  return members.required & ~set;
}

/// The shared bits of a set side by side.
inline uint32_t packed_bits(const Members& members, MemberSet set) noexcept {
  uint32_t packed = 0;
  uint32_t place = 0;
  for (MemberSet left = members.shared; left != 0; left &= left - 1, ++place) {
    if ((set & left & (~left + 1)) != 0) packed |= uint32_t{1} << place;
  }
  return packed;
}

/// How many members it takes at least to put in what `set` lacks; kUnbounded: it cannot be.
inline uint32_t missing_members(const Members& members, MemberSet set) noexcept {
  const MemberSet missing = missing_bits(members, set);
  const auto own = static_cast<uint32_t>(std::popcount(missing & ~members.shared));
  const MemberSet shared = missing & members.shared;
  if (shared == 0) return own;
  const uint8_t cover = members.cover[packed_bits(members, shared)];
  return cover == UINT8_MAX ? kUnbounded : own + cover;
}

/// Finds out `shared` and `cover`; the list and what is required are there.
inline void find_cover(Members* members) {
  members->shared = 0;
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

/// Whether `set` may be all.
inline bool members_complete(const Members& members, MemberSet set) noexcept {
  if (missing_bits(members, set) != 0) return false;
  return members.min <= 1 || member_count(members, set) >= members.min;
}

/// The set with one more member; false if it cannot be called.
inline bool add_member(const Members& members, const Members::Member& member,
                       MemberSet* set) noexcept {
  if (member.once && (*set & member.bits) != 0) return false;
  const uint32_t count = member_count(members, *set);
  const MemberSet with = *set | member.bits;
  if (members.max != kUnbounded &&
      count + uint64_t{1} + missing_members(members, with) > members.max) {
    return false;
  }
  *set = with;
  if (members.count_shift < 64) {
    // Above the limits all counts are alike.
    const uint32_t most = members.max != kUnbounded ? members.max : members.min;
    if (count < most) *set += MemberSet{1} << members.count_shift;
  }
  return true;
}

/// Whether a member can follow `set`.
inline bool member_can_follow(const Members& members, MemberSet set) noexcept {
  return std::any_of(members.list.begin(), members.list.end(), [&](const auto& member) {
    MemberSet copy = set;
    return add_member(members, member, &copy);
  });
}

/// Fewest bytes of the members, each with a separator, that `set` lacks.
inline uint64_t missing_length(const Members& members, MemberSet set) noexcept {
  if (members_complete(members, set)) return 0;
  uint64_t length = 0;
  for (const Members::Member& member : members.list) {
    if ((missing_bits(members, set) & member.bits) == 0) continue;
    MemberSet with = set;
    if (!add_member(members, member, &with)) continue;
    length += member.shortest;
    set = with;
  }
  while (!members_complete(members, set)) {
    const auto next =
        std::find_if(members.list.begin(), members.list.end(),
                     [&](const auto& member) { return add_member(members, member, &set); });
    if (next == members.list.end()) break;
    length += next->shortest;
  }
  return length;
}

/// Whether all that is required can be called at all.
inline bool members_possible(const Members& members) noexcept {
  MemberSet bits = 0;
  uint64_t most = 0;
  for (const Members::Member& member : members.list) {
    bits |= member.bits;
    most += member.once ? 1 : kUnbounded;
  }
  if (members.list.empty() || (members.required & ~bits) != 0) return false;
  return most >= members.min && members.min <= members.max &&
         missing_members(members, 0) <= members.max;
}

}  // namespace gen::grammar
