// SPDX-License-Identifier: Apache-2.0
// What a model keeps of ONE sequence beside keys and values: the state of recurrent layers, or of a
// caller's own model. Like a cache it is grown by plan and commit; unlike a cache it is not a list
// of entries, so it cannot be cut anywhere, and what of a plan's rows may be left out must be known
// before they run. A step calls plan(n), runs the rows, and who owns the sequence commits what it
// keeps of them, or drops the plan. A new kind of state is one file that implements this.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/kept.h"
#include "cache/state/snapshot_list.h"
#include "cache/state/state_shape.h"
#include "cache/state_snapshot.h"

namespace gen::cache {

/// What may become real of a plan's rows.
enum class Keep : uint8_t {
  kAll,   // all or none: prompts, and tokens that are certain
  kSome,  // any first ones: rows of a chain of drafts
};

/// Rows [start, start + count) of a sequence; valid until the state next changes.
struct StatePlan {
  int32_t start = 0;
  int32_t count = 0;
  Keep keep = Keep::kAll;
  int32_t certain = 0;  // with kSome: first rows that become real if any do
};

class SequenceState;
class StateReader;
class StateWriter;

/// Copies of a state.
class StateCopies {
 public:
  virtual ~StateCopies() = default;
  /// A state of its own with the same content.
  [[nodiscard]] virtual Result<std::unique_ptr<SequenceState>> fork() = 0;
};

/// Points to come back to, in memory and in files.
class StateSnapshots {
 public:
  virtual ~StateSnapshots() = default;
  /// What rewind() may go back to. Owned by the state; those in it are of this state's text.
  [[nodiscard]] virtual SnapshotList& list() noexcept = 0;
  /// Bytes of a snapshot with memory of its own and a few kept rows, and whether they are the
  /// host's.
  [[nodiscard]] virtual size_t bytes() const noexcept = 0;
  [[nodiscard]] virtual bool in_host() const noexcept = 0;
  /// Snapshots can be made of these lengths up to the state's: more than one after a pass with rows
  /// that were not certain. They then share their memory.
  [[nodiscard]] virtual int32_t earliest() const noexcept = 0;
  /// As many rows as a pass may keep for that: with them a snapshot takes at most twice these
  /// bytes.
  [[nodiscard]] virtual int32_t most_kept() const noexcept = 0;
  /// The state's length.
  static constexpr int32_t kNow = -1;
  /// What the state was after the first `at` positions, for anybody to restore. What passes need
  /// because of it is taken here. kOutOfMemory, and nothing changed.
  virtual Result<std::shared_ptr<const StateSnapshot>> share(int32_t at = kNow) = 0;
  /// The same, added to list(). std::bad_alloc.
  Result<std::shared_ptr<const StateSnapshot>> snapshot(
      int32_t at = kNow, SnapshotPlace place = SnapshotPlace::kPlain) {
    list().reserve(1);
    GEN_ASSIGN(auto made, share(at));
    list().add(made, place);
    return made;
  }
  /// Makes the state that of a snapshot, which stays; list() has no other then. kInvalidArgument,
  /// and nothing changed, for one of another model's state.
  virtual Status restore(std::shared_ptr<const StateSnapshot> snapshot) = 0;
  /// Writes the state and list() as sections of a saved session, and reads them into an empty
  /// state, which stays empty on failure: kFormat, kInvalidArgument for another model's,
  /// kOutOfMemory. What exceeds the list's budget is not kept.
  virtual Status save(StateWriter& to) const = 0;
  virtual Status load(StateReader& from) = 0;
};

/// What the layers of a state hold, for people and tests to look at.
class StateReading {
 public:
  virtual ~StateReading() = default;
  /// Of each layer; a caller's state tells the dims only when it is asked for them. Constant.
  [[nodiscard]] virtual std::vector<StateFacts> facts() const = 0;
  /// The dims of a layer in [0, layers). Errors: those of a caller's functions.
  [[nodiscard]] virtual Result<std::array<int32_t, 3>> dims(int32_t layer) const = 0;
  /// Whether read() gives the state after all positions. A state that keeps rows beside it does not
  /// until these have run in a pass of Keep::kAll.
  [[nodiscard]] virtual bool settled() const noexcept = 0;
  /// Copies a layer's cells to `to`, which has the size that dims() says. Waits for a device.
  virtual Status read(int32_t layer, std::span<float> to) const = 0;
};

/// Owned by the session. Threads: not synchronised; only the leader of the current step may use it.
class SequenceState {
 public:
  virtual ~SequenceState() = default;

  /// Committed positions.
  [[nodiscard]] virtual int32_t length() const noexcept = 0;
  /// Whether plans may be made with Keep::kSome.
  [[nodiscard]] virtual bool keeps_some() const noexcept = 0;
  /// To run `n` more rows; nothing observable changes. With kSome the first `certain` of them
  /// become real if any do; the fewer rows are left, the less memory the plan takes. kState if it
  /// is lost; kUnsupported where keeps_some() says so; kOutOfMemory.
  [[nodiscard]] virtual Result<StatePlan> plan(int32_t n, Keep keep, int32_t certain) = 0;
  [[nodiscard]] Result<StatePlan> plan(int32_t n, Keep keep) { return plan(n, keep, 0); }
  /// Layers that a plan's operations read and write, where they do; else none. Constant.
  [[nodiscard]] virtual std::span<const StateShape> shapes() const noexcept { return {}; }
  /// Where they lie; the rows' numbers are the caller's. Valid until the state next changes.
  virtual void rows(const StatePlan& /*plan*/, engine::StateRows* /*rows*/) const noexcept {}
  /// Makes the first rows of a plan that has run real, the others are as if they had never come:
  /// all of them or none with Keep::kAll. Never rows that are not the first ones. A state that can
  /// only be replaced by what it was before the pass is that again unless all are kept: length()
  /// says so, and the caller runs the rows again.
  virtual void commit(const StatePlan& plan, Kept kept) noexcept = 0;
  /// As before the plan, whether it has run, has failed or has not begun.
  virtual void drop(const StatePlan& plan) noexcept = 0;
  /// Back to what it was after the first `n` positions, or fewer, as many as it can; their number.
  /// The caller runs the rest again. Nothing happens if it has no more than `n`. After a failure it
  /// is lost.
  virtual Result<int32_t> rewind(int32_t n) = 0;
  /// True if it is unusable: it must be made again, and its tokens run again. commit() and drop()
  /// may lose it, where undoing rows can fail.
  [[nodiscard]] virtual bool lost() const noexcept { return false; }

  /// Null where there is no copying.
  [[nodiscard]] virtual StateCopies* copies() noexcept { return nullptr; }
  /// Null where nothing is known of what it holds.
  [[nodiscard]] virtual StateReading* reading() noexcept { return nullptr; }
  /// Null where it cannot be kept beside what it becomes.
  [[nodiscard]] virtual StateSnapshots* snapshots() noexcept { return nullptr; }
};

}  // namespace gen::cache
