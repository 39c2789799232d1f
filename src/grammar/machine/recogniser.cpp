// SPDX-License-Identifier: Apache-2.0
// Steps of the recogniser, see recogniser.h.
#include "grammar/machine/recogniser.h"

#include <algorithm>
#include <tuple>

#include "grammar/base/hash.h"
#include "grammar/machine/members.h"

namespace gen::grammar {
namespace {

constexpr size_t kFewItems = 16;
constexpr uint64_t kWorkPerItem = 16;
constexpr uint64_t kMaxLength = uint64_t{1} << 62;

auto key(const Frame& f) { return std::tie(f.ret, f.parent, f.loop, f.low, f.high, f.set); }

uint64_t item_hash(Item item) { return mix(item.state, item.list) >> 16; }

// Length of the member after a separator, and of those missing then.
uint64_t length_of_next(const Members& members, const MembersSeen& seen) {
  uint64_t least = kMaxLength;
  // Any of the missing members will do.
  const uint64_t enough = members.shortest_of_bits.empty() || members_complete(members, seen)
                              ? 0
                              : missing_length(members, seen) - members.separator_shortest;
  for (const Members::Member& member : members.list) {
    MembersSeen with = seen;
    if (!add_member(members, member, &with)) continue;
    const uint64_t all =
        member.shortest - members.separator_shortest + missing_length(members, with);
    least = std::min(least, all);
    if (least == enough) break;
  }
  return least;
}

// Minimum number of bytes from the end of a call's machine to the end of the text.
uint64_t length_of(const Machines& machines, const ReturnLists& lists, const Frame& frame) {
  uint64_t length = machines.states[frame.ret].shortest;
  if (frame.parent != kNoFrame) length += lists.at(frame.parent).length;
  if (frame.loop != 0) {
    const Loop& loop = machines.loops[frame.loop];
    if (loop.members != 0) {
      const Members& members = machines.members[loop.members];
      const MembersSeen seen = members_seen(frame);
      length += loop.separator ? length_of_next(members, seen) : missing_length(members, seen);
      return std::min(length, kMaxLength);
    }
    const uint64_t done = static_cast<uint64_t>(frame.high) + 1;
    if (done < loop.min) length += (loop.min - done) * machines.shortest(loop.machine);
  }
  return std::min(length, kMaxLength);
}

// Each limit excludes some of the paths.
uint64_t shortest_of(const Machines& machines, const ReturnLists& lists, Item item,
                     std::span<const Machines::LimitedPath> paths) {
  uint64_t least = UINT64_MAX;
  for (ListId id = item.list; id != kNoFrame; id = lists.at(id).next) {
    const Frame& frame = lists.at(id);
    const Loop& loop = machines.loops[frame.loop];
    const uint32_t left = loop.limited ? loop.max - frame.low : UINT32_MAX;
    const uint64_t behind = length_of(machines, lists, frame);
    for (const Machines::LimitedPath& path : paths) {
      if (path.counted <= left) least = std::min(least, behind + path.bytes);
    }
  }
  return least;
}

}  // namespace

ListId ReturnLists::bottom(StateId ret) {
  const auto id = static_cast<ListId>(size());
  frames_.push_back({ret, kNoFrame, 0, 0, 0, kNoFrame, 0, {}});
  return id;
}

bool ReturnLists::equals(ListId id, std::span<const Frame> frames) const noexcept {
  for (const Frame& frame : frames) {
    if (id == kNoFrame || id >= size() || key(at(id)) != key(frame)) return false;
    id = at(id).next;
  }
  return id == kNoFrame;
}

ListId ReturnLists::add(std::span<const Frame> frames, uint64_t length) {
  uint64_t hash = frames.size();
  for (const Frame& frame : frames) {
    hash = mix(mix(hash, static_cast<uint64_t>(frame.ret) << 32 | frame.parent), frame.loop);
    hash = mix(hash, static_cast<uint64_t>(frame.low) << 32 | frame.high);
    if (frame.loop != 0) {
      for (const uint64_t word : frame.set.words()) hash = mix(hash, word);
    }
  }
  ListId& recent = recent_[(hash >> 16) % recent_.size()];
  // The length of a list inside another one is not known: it is 0.
  if (recent < size() && at(recent).length == length && equals(recent, frames)) {
    return recent;
  }
  const auto id = static_cast<ListId>(size());
  for (size_t i = 0; i < frames.size(); ++i) {
    Frame& frame = frames_.emplace_back(frames[i]);
    frame.next = i + 1 == frames.size() ? kNoFrame : static_cast<uint32_t>(size());
    frame.length = i == 0 ? length : 0;
  }
  recent = id;
  return id;
}

void ReturnLists::compact(size_t from, std::span<Item> items) {
  std::vector<uint32_t>& place = place_;  // later: the new number
  std::vector<ListId>& open = open_;
  place.assign(frames_.size() - from, kNoFrame);
  open.clear();
  const auto reach = [&](ListId id) {
    if (id == kNoFrame || id < from || place[id - from] == 0) return;
    open.push_back(id);
    for (; id != kNoFrame; id = frames_[id].next) place[id - from] = 0;
  };
  for (const Item& item : items) reach(item.list);
  while (!open.empty()) {
    ListId id = open.back();
    open.pop_back();
    for (; id != kNoFrame; id = frames_[id].next) reach(frames_[id].parent);
  }
  const auto moved = [&](ListId id) { return id == kNoFrame || id < from ? id : place[id - from]; };
  auto kept = static_cast<uint32_t>(from);
  for (size_t i = from; i < frames_.size(); ++i) {
    if (place[i - from] == kNoFrame) continue;
    place[i - from] = kept;
    Frame& frame = frames_[kept++] = frames_[i];
    frame.parent = moved(frame.parent);
    if (frame.next != kNoFrame) frame.next = kept;
  }
  frames_.resize(kept);
  for (Item& item : items) item.list = moved(item.list);
}

void Step::begin() noexcept {
  items_.clear();
  reading_.clear();
  pending_.clear();
  hashed_ = 0;
  ended_ = false;
  outside_ = false;
}

void Step::start(ReturnLists& lists, ListId bottom) {
  const Frame& end = lists.at(bottom);
  ended_ = machines_->root_empty;
  if (machines_->root_matches) call(machines_->root, end);
}

bool Step::add(Item item) {
  if (items_.size() < kFewItems) {
    if (std::find(items_.begin(), items_.end(), item) != items_.end()) return false;
  } else {
    if (hashed_ == 0 || slots_.size() < 4 * items_.size()) {
      slots_.assign(8 * items_.size(), UINT32_MAX);
      hashed_ = 0;
    }
    const auto place_of = [&](Item one) {
      size_t at = item_hash(one) % slots_.size();
      while (slots_[at] != UINT32_MAX && items_[slots_[at]] != one) at = (at + 1) % slots_.size();
      return at;
    };
    for (; hashed_ < items_.size(); ++hashed_) {
      slots_[place_of(items_[hashed_])] = static_cast<uint32_t>(hashed_);
    }
    const size_t place = place_of(item);
    if (slots_[place] != UINT32_MAX) return false;
    slots_[place] = static_cast<uint32_t>(items_.size());
    ++hashed_;
  }
  items_.push_back(item);
  return true;
}

void Step::read(ReturnLists& lists, std::span<const Item> from, uint8_t byte) {
  for (const Item item : from) {
    for (const ByteEdge& edge : machines_->bytes(item.state)) {
      if (edge.low > byte) break;
      if (edge.high >= byte) arrive(lists, edge.target, item.list);
    }
  }
}

void Step::arrive(ReturnLists& lists, StateId state, ListId list) {
  if (state == kEnd) {
    ended_ = true;
  } else if (state == kOutside) {
    outside_ = true;
  } else if (machines_->states[state].limit >= Limit::kLimited) {
    add_limited(lists, {state, list});
  } else {
    add({state, list});
  }
}

// Whether it belongs to a limit that can be reached.
bool Step::counts(const Frame& frame) const noexcept {
  const Loop& loop = machines_->loops[frame.loop];
  return loop.limited &&
         (max_bytes_ == UINT64_MAX || loop.max - frame.low < max_bytes_ + loop.farthest);
}

bool Step::can_come(const ReturnLists& lists, StateId state, ListId list) const noexcept {
  const Limit limit = machines_->states[state].limit;
  if (limit < Limit::kLimited) return true;
  const uint64_t more = machines_->fewest[state] + (limit == Limit::kCounted ? uint64_t{1} : 0);
  for (ListId id = list; id != kNoFrame; id = lists.at(id).next) {
    const Frame& frame = lists.at(id);
    if (!counts(frame) || frame.low + more <= machines_->loops[frame.loop].max) return true;
  }
  return false;
}

// Updates the counts for reaching the item's state, and drops frames whose limits leave no path
// from there.
void Step::add_limited(ReturnLists& lists, Item item) {
  const bool counted = machines_->states[item.state].limit == Limit::kCounted;
  const uint64_t fewest = machines_->fewest[item.state];
  bool same = true;
  limited_.clear();
  for (ListId id = item.list; id != kNoFrame; id = lists.at(id).next) {
    Frame frame = lists.at(id);
    if (counts(frame)) {
      if (counted) frame.high = ++frame.low;
      same &= !counted;
      if (frame.low + fewest > machines_->loops[frame.loop].max) {
        same = false;
        continue;
      }
    }
    limited_.push_back(frame);
  }
  work_ += limited_.size();
  if (limited_.empty()) return;
  if (!same) {
    uint64_t length = kMaxLength;
    for (const Frame& frame : limited_) {
      length = std::min(length, length_of(*machines_, lists, frame));
    }
    item.list = lists.add(limited_, length);
  }
  add(item);
}

void Step::leave(ReturnLists& lists, const Frame& frame) {
  const Loop& loop = machines_->loops[frame.loop];
  if (frame.loop == 0 || loop.limited) {
    arrive(lists, frame.ret, frame.parent);
    return;
  }
  if (loop.members != 0) {
    leave_member(lists, frame, loop);
    return;
  }
  Frame again = frame;
  // Above the minimum of an unbounded loop all counts are equivalent.
  const uint32_t most = loop.max == kUnbounded ? loop.min : loop.max;
  again.low = std::min(frame.low + 1, most);
  again.high = std::min(frame.high + 1, most);
  if (again.high >= loop.min) arrive(lists, frame.ret, frame.parent);
  if (loop.max != kUnbounded) {
    if (again.low >= loop.max) return;
    again.high = std::min(again.high, loop.max - 1);
  }
  call(loop.machine, again);
}

void Step::leave_member(ReturnLists& lists, const Frame& frame, const Loop& loop) {
  const Members& members = machines_->members[loop.members];
  if (loop.separator) {
    Frame next = frame;
    --next.loop;
    call_members(next);
    return;
  }
  const MembersSeen seen = members_seen(frame);
  Frame next = frame;
  if (members_complete(members, seen)) arrive(lists, frame.ret, frame.parent);
  if (!member_can_follow(members, seen)) return;
  ++next.loop;
  call(members.separator, next);
}

// Calls all members that can follow; `frame` has the set so far.
void Step::call_members(const Frame& frame) {
  const Members& members = machines_->members[machines_->loops[frame.loop].members];
  for (const Members::Member& member : members.list) {
    MembersSeen seen = members_seen(frame);
    if (!add_member(members, member, &seen)) continue;
    Frame next = frame;
    put_members_seen(seen, &next);
    call(member.machine, next);
    ++work_;
  }
}

void Step::call(uint32_t machine, const Frame& frame) {
  pending_.push_back({machines_->order[machine], machine, frame});
  std::push_heap(pending_.begin(), pending_.end(),
                 [](const Pending& a, const Pending& b) { return a.order > b.order; });
}

void Step::call_from(const ReturnLists& lists, Item item) {
  for (const CallEdge& edge : machines_->calls(item.state)) {
    if (!can_come(lists, edge.target, item.list)) continue;
    if (edge.hand_over) {
      for (ListId id = item.list; id != kNoFrame; id = lists.at(id).next) {
        call(edge.machine, lists.at(id));
        ++work_;
      }
    } else {
      const Frame frame = {edge.target, item.list, edge.loop, 0, 0, kNoFrame, 0, {}};
      if (machines_->loops[edge.loop].members != 0) {
        call_members(frame);
      } else {
        call(edge.machine, frame);
      }
    }
  }
}

// Collects all pending calls of the machine.
ListId Step::take_list(ReturnLists& lists, uint32_t order) {
  frames_.clear();
  while (!pending_.empty() && pending_.front().order == order) {
    frames_.push_back(pending_.front().frame);
    std::pop_heap(pending_.begin(), pending_.end(),
                  [](const Pending& a, const Pending& b) { return a.order > b.order; });
    pending_.pop_back();
    ++work_;
  }
  if (frames_.size() > 1) {
    std::sort(frames_.begin(), frames_.end(),
              [](const Frame& a, const Frame& b) { return key(a) < key(b); });
    size_t kept = 0;
    for (size_t i = 1; i < frames_.size(); ++i) {
      Frame& last = frames_[kept];
      const Frame& frame = frames_[i];
      const bool alike =
          last.ret == frame.ret && last.parent == frame.parent && last.loop == frame.loop;
      const bool counts = machines_->loops[frame.loop].members == 0;
      if (alike && counts && frame.low <= last.high + 1) {
        last.high = std::max(last.high, frame.high);
      } else {
        frames_[++kept] = frame;
      }
    }
    frames_.resize(kept + 1);
  }
  uint64_t length = kMaxLength;
  for (const Frame& frame : frames_) {
    length = std::min(length, length_of(*machines_, lists, frame));
  }
  return lists.add(frames_, length);
}

bool Step::finish(ReturnLists& lists, size_t max_items) {
  const uint64_t max_work = work_ + kWorkPerItem * max_items;
  const auto too_much = [&] {
    return items_.size() + pending_.size() > max_items || work_ > max_work;
  };
  for (size_t i = 0; i < items_.size(); ++i) {
    const Item item = items_[i];
    ++work_;
    if (machines_->states[item.state].final) {
      for (ListId id = item.list; id != kNoFrame; id = lists.at(id).next) {
        leave(lists, lists.at(id));
        ++work_;
      }
    }
    if (too_much()) return false;
  }
  for (size_t i = 0; i < items_.size(); ++i) {
    call_from(lists, items_[i]);
    if (too_much()) return false;
  }
  while (!pending_.empty()) {
    const Pending& next = pending_.front();
    const StateId start = machines_->starts[next.machine];
    const Item item = {start, take_list(lists, next.order)};
    if (add(item)) call_from(lists, item);
    ++work_;
    if (too_much()) return false;
  }
  for (const Item item : items_) {
    if (machines_->states[item.state].reads) reading_.push_back(item);
  }
  return true;
}

bool is_near_limit(const Machines& machines, const ReturnLists& lists, Item item, uint32_t bytes) {
  const Limit limit = machines.states[item.state].limit;
  if (limit == Limit::kNone) return false;
  for (ListId id = item.list; id != kNoFrame; id = lists.at(id).next) {
    const Frame& frame = lists.at(id);
    const Loop& loop = machines.loops[frame.loop];
    if (limit == Limit::kInside) {
      const bool more = frame.parent != kNoFrame;
      if (more && is_near_limit(machines, lists, {frame.ret, frame.parent}, bytes)) return true;
    } else if (loop.limited && loop.max - frame.low < uint64_t{bytes} + loop.farthest) {
      return true;
    }
  }
  return false;
}

uint64_t shortest(const Machines& machines, const ReturnLists& lists, Item item) {
  if (!machines.mixed.empty()) {
    const auto mixed = machines.mixed.find(item.state);
    if (mixed != machines.mixed.end()) return shortest_of(machines, lists, item, mixed->second);
  }
  return machines.states[item.state].shortest + lists.at(item.list).length;
}

uint64_t shortest(const Machines& machines, const ReturnLists& lists, std::span<const Item> items) {
  uint64_t least = UINT64_MAX;
  for (const Item item : items) least = std::min(least, shortest(machines, lists, item));
  return least;
}

}  // namespace gen::grammar
