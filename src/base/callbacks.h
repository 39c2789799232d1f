// SPDX-License-Identifier: Apache-2.0
// Which threads are inside a function of the host, so that calls which such a function must not
// make can fail instead of deadlocking. Every table of the host's functions has one Callbacks
// object; code that calls a function of the table holds an Inside. See
// api/boundary/entry.h for the checks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace gen {

/// An object whose destruction was requested in a callback and is postponed until after it. It is a
/// base class of such objects, so that postponing needs no memory.
struct Postponed {
  void (*end)(Postponed* self) noexcept = nullptr;
  Postponed* next = nullptr;
  std::thread::id asked_by;
};

/// Threads: any.
class Callbacks {
 public:
  /// The scope of one call of a host's function. Scopes nest.
  class Inside {
   public:
    explicit Inside(Callbacks& callbacks) noexcept;
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    friend class Callbacks;
    Callbacks& callbacks_;
    const std::thread::id thread_;
    Inside* next_;
  };

  constexpr Callbacks() noexcept = default;
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  /// Whether this thread is inside a function of the table. One relaxed load while no thread is:
  /// only this thread can have entered itself, so an old value cannot hide it.
  [[nodiscard]] bool inside() const noexcept {
    return count_.load(std::memory_order_relaxed) != 0 && holds(std::this_thread::get_id());
  }

  /// Ends `object` at the first settle() after this thread has left the table's functions.
  void postpone(Postponed* object) noexcept;
  /// Ends the objects postponed by threads that have left. No lock may be held, and no change may
  /// be in progress. One relaxed load if none was postponed.
  void settle() noexcept {
    if (waiting_.load(std::memory_order_relaxed)) end_waiting();
  }

 private:
  [[nodiscard]] bool holds(std::thread::id thread) const noexcept;
  [[nodiscard]] bool holds_locked(std::thread::id thread) const noexcept;
  [[nodiscard]] Postponed* take_one() noexcept;
  void end_waiting() noexcept;

  mutable std::mutex mutex_;
  std::atomic<uint32_t> count_{0};  // scopes that are open
  Inside* open_ = nullptr;          // latest first
  std::atomic<bool> waiting_{false};
  Postponed* first_ = nullptr;  // oldest first
};

/// The tables that an object may call; null: none.
using CallbackList = std::vector<std::shared_ptr<Callbacks>>;
using SharedCallbacks = std::shared_ptr<const CallbackList>;

}  // namespace gen
