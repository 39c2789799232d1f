// SPDX-License-Identifier: Apache-2.0
// The recogniser: which states the machines of a grammar can be in behind what was read.
//
// An item is a state and a return list: where calls go on once the state's machine ends. All calls
// of a machine in one place share one return list, so ambiguity merges, and the lists form a graph
// without rings, since no machine calls itself before a byte was read. A call in the last place of
// its machine takes over the lists of its caller, so that repetition by recursion needs no depth.
// Items and frames only refer to older ones: taking steps back is forgetting the newest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/machine/machines.h"

namespace gen::grammar {

/// Index of a return list's first frame.
using ListId = uint32_t;

/// A way on behind a machine's end.
struct Frame {
  StateId ret;      // where its caller goes on
  ListId parent;    // ... and where that goes on
  uint32_t loop;    // 0: the call was of one
  uint32_t low;     // how often the loop's machine had ended before this call: any number from low
  uint32_t high;    // to high; of members: low is their number where that counts; of a limited
                    // machine: both how often a text has come to its counted states
  uint32_t next;    // of the same list, kNoFrame behind the last
  uint64_t length;  // first frame only: fewest bytes from the machine's end to the end of all
  MemberSet set;    // of members: which have been called
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
  /// Not below what it was built on.
  void shrink(size_t size) { frames_.resize(size - n_below_); }
  void clear() noexcept {
    frames_.clear();
    n_below_ = 0;
  }
  /// Begins with those of `other`, which stays as it is while they are used.
  void build_on(const ReturnLists& other) noexcept {
    frames_.clear();
    below_ = other.frames_.data();
    n_below_ = other.frames_.size();
  }

  /// The list of these frames, which are in order and differ; an equal one made lately serves.
  ListId add(std::span<const Frame> frames, uint64_t length);
  /// Forgets those from number `from` on that nothing in `items` leads to; items get new numbers.
  /// Not of lists that were built on others.
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

/// One step of the recogniser: seeds are put in, then finish() gives the items behind them.
/// Reused from step to step, so that it allocates nothing once its tables have grown.
class Step {
 public:
  /// `machines` outlive it.
  explicit Step(const Machines& machines) : machines_(&machines) {}

  void begin() noexcept;
  /// Before anything was read.
  void start(ReturnLists& lists, ListId bottom);
  /// Items behind one byte or token.
  void read(ReturnLists& lists, std::span<const Item> from, uint8_t byte);
  void arrive(ReturnLists& lists, StateId state, ListId list);
  /// The end of a machine called from this frame, which may be one of `lists`.
  void leave(ReturnLists& lists, const Frame& frame);
  /// From here on no limit is counted that texts of so many bytes cannot come to. They are read by
  /// themselves: from one of them to the next the counts are kept by someone else.
  void read_at_most(uint32_t bytes) noexcept { max_bytes_ = bytes; }
  /// Whether limits leave a way from the state to its machine's end.
  [[nodiscard]] bool can_come(const ReturnLists& lists, StateId state, ListId list) const noexcept;
  /// What was put in so far, before finish().
  [[nodiscard]] std::span<const Item> seeds() const noexcept { return items_; }
  /// Completes the step: machines that end and machines that are called. False if there were more
  /// than `max_items`; the items then mean nothing.
  [[nodiscard]] bool finish(ReturnLists& lists, size_t max_items);

  /// Those that read something.
  [[nodiscard]] std::span<const Item> items() const noexcept { return reading_; }
  [[nodiscard]] bool ended() const noexcept { return ended_; }      // may end here
  [[nodiscard]] bool outside() const noexcept { return outside_; }  // came to kOutside
  [[nodiscard]] bool dead() const noexcept { return reading_.empty() && !ended_ && !outside_; }
  /// Items looked at since the object was made.
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
  std::vector<Pending> pending_;  // a heap, least order first
  std::vector<Frame> frames_;
  std::vector<Frame> limited_;
  uint64_t max_bytes_ = UINT64_MAX;  // there is no most
  std::vector<uint32_t> slots_;      // a hash table of items_, used from kFew items on
  size_t hashed_ = 0;
  uint64_t work_ = 0;
  bool ended_ = false;
  bool outside_ = false;
};

/// Whether texts of so many bytes may come to a limit of the string that the item is inside of.
bool is_near_limit(const Machines& machines, const ReturnLists& lists, Item item, uint32_t bytes);

/// Fewest bytes from an item, or from one of several, to the end of all.
uint64_t shortest(const Machines& machines, const ReturnLists& lists, Item item);
uint64_t shortest(const Machines& machines, const ReturnLists& lists, std::span<const Item> items);

}  // namespace gen::grammar
