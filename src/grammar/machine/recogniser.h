// SPDX-License-Identifier: Apache-2.0
// The recogniser: the states that the machines of a grammar can be in after a text.
//
// An item is a state and a return list: the continuations after the end of the state's machine. All
// calls of a machine at one position share a return list, so ambiguities merge, and the lists form
// an acyclic graph (a graph-structured stack), because no machine calls itself before a byte has
// been read. A tail call takes over the lists of its caller, so that repetition by recursion needs
// no depth. Items and frames refer only to older ones, so undoing steps means dropping the newest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/machine/machines.h"

namespace gen::grammar {

/// Index of a return list's first frame.
using ListId = uint32_t;

/// A continuation after a machine's end.
struct Frame {
  StateId ret;      // where its caller continues
  ListId parent;    // ... and the continuations of that caller
  uint32_t loop;    // 0: the call was a single one
  uint32_t low;     // completed rounds of the loop before this call: any number from low
  uint32_t high;    // to high; for members: low is their number where that counts; for a limited
                    // machine: both are the visits of its counted states
  uint32_t next;    // in the same list, kNoFrame after the last
  uint64_t length;  // first frame only: minimum bytes from the machine's end to the end of the text
  MemberSet set;    // for members: those called so far
};

inline constexpr uint32_t kNoFrame = UINT32_MAX;

struct Item {
  StateId state;
  ListId list;
  bool operator==(const Item&) const = default;
};

/// Frames, newest last.
/// Threads: not synchronised.
class ReturnLists {
 public:
  static constexpr size_t kFewRecent = 256;
  static constexpr size_t kManyRecent = 8192;
  /// How many lists add() remembers.
  explicit ReturnLists(size_t recent = kFewRecent) : recent_(recent, 0) {}

  /// The list that leads to `ret` alone, kEnd or kOutside.
  ListId bottom(StateId ret);
  [[nodiscard]] const Frame& at(ListId id) const noexcept {
    return id < n_below_ ? below_[id] : frames_[id - n_below_];
  }
  [[nodiscard]] size_t size() const noexcept { return n_below_ + frames_.size(); }
  /// Must not cut into the lists it was built on.
  void shrink(size_t size) { frames_.resize(size - n_below_); }
  void clear() noexcept {
    frames_.clear();
    n_below_ = 0;
  }
  /// Starts with the lists of `other`, which must not change while they are used.
  void build_on(const ReturnLists& other) noexcept {
    frames_.clear();
    below_ = other.frames_.data();
    n_below_ = other.frames_.size();
  }

  /// The list of these frames, which are sorted and distinct; an equal recent one is reused.
  ListId add(std::span<const Frame> frames, uint64_t length);
  /// Garbage collection: drops frames from number `from` on that no item refers to, directly or
  /// not, and renumbers the items. Not for lists that were built on others.
  void compact(size_t from, std::span<Item> items);
  [[nodiscard]] size_t memory() const noexcept { return frames_.capacity() * sizeof(Frame); }

 private:
  [[nodiscard]] bool equals(ListId id, std::span<const Frame> frames) const noexcept;
  std::vector<Frame> frames_;
  const Frame* below_ = nullptr;
  size_t n_below_ = 0;
  std::vector<uint32_t> place_;  // for compact()
  std::vector<ListId> open_;
  std::vector<ListId> recent_;  // by hash; checked when used
};

/// One step of the recogniser: seeds are added, then finish() computes the items after them. Reused
/// from step to step, so that it allocates nothing once its tables have grown.
class Step {
 public:
  /// `machines` outlive it.
  explicit Step(const Machines& machines) : machines_(&machines) {}

  void begin() noexcept;
  /// The seeds before anything is read.
  void start(ReturnLists& lists, ListId bottom);
  /// Adds the items after one byte or token.
  void read(ReturnLists& lists, std::span<const Item> from, uint8_t byte);
  void arrive(ReturnLists& lists, StateId state, ListId list);
  /// Adds the end of a machine called from this frame, which may be one of `lists`.
  void leave(ReturnLists& lists, const Frame& frame);
  /// From here on, limits that texts of that many bytes cannot reach are not counted. Such texts
  /// are read separately, and the caller keeps the counts from one to the next.
  void read_at_most(uint32_t bytes) noexcept { max_bytes_ = bytes; }
  /// Whether the limits leave a path from the state to its machine's end.
  [[nodiscard]] bool can_come(const ReturnLists& lists, StateId state, ListId list) const noexcept;
  /// The seeds added so far, before finish().
  [[nodiscard]] std::span<const Item> seeds() const noexcept { return items_; }
  /// Completes the step: processes machines that end and machines that are called. False if there
  /// are more than `max_items`; the items are then meaningless.
  [[nodiscard]] bool finish(ReturnLists& lists, size_t max_items);

  /// The items that read something.
  [[nodiscard]] std::span<const Item> items() const noexcept { return reading_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }      // the text may end here
  [[nodiscard]] bool outside() const noexcept { return outside_; }  // reached kOutside
  [[nodiscard]] bool dead() const noexcept { return reading_.empty() && !ended_ && !outside_; }
  /// Items visited since the object was made.
  [[nodiscard]] uint64_t work() const noexcept { return work_; }

 private:
  struct Pending {
    uint32_t order;
    uint32_t machine;
    Frame frame;
  };
  bool add(Item item);
  void add_limited(ReturnLists& lists, Item item);
  [[nodiscard]] bool counts(const Frame& frame) const noexcept;
  void leave_member(ReturnLists& lists, const Frame& frame, const Loop& loop);
  void call(uint32_t machine, const Frame& frame);
  void call_members(const Frame& frame);
  void call_from(const ReturnLists& lists, Item item);
  ListId take_list(ReturnLists& lists, uint32_t order);

  const Machines* machines_;
  std::vector<Item> items_;
  std::vector<Item> reading_;
  std::vector<Pending> pending_;  // a heap, lowest order first
  std::vector<Frame> frames_;
  std::vector<Frame> limited_;
  uint64_t max_bytes_ = UINT64_MAX;  // no maximum
  std::vector<uint32_t> slots_;      // a hash table of items_, used once there are kFew items
  size_t hashed_ = 0;
  uint64_t work_ = 0;
  bool ended_ = false;
  bool outside_ = false;
};

/// Whether texts of that many bytes may reach a limit of the string that the item is inside.
bool is_near_limit(const Machines& machines, const ReturnLists& lists, Item item, uint32_t bytes);

/// Minimum number of bytes from an item, or from one of several, to the end of the text.
uint64_t shortest(const Machines& machines, const ReturnLists& lists, Item item);
uint64_t shortest(const Machines& machines, const ReturnLists& lists, std::span<const Item> items);

}  // namespace gen::grammar
