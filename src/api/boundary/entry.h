// SPDX-License-Identifier: Apache-2.0
// How calls enter the objects of handles and how handles are freed, inside and outside of
// callbacks.
//
// Calls reach objects through Shared::enter(). It returns kBusy to a thread that runs inside a host
// function which this object may be calling, because the call would wait for itself. The returned
// object stays alive even if its handle is freed meanwhile. end_handle() frees handles and returns
// without waiting: inside such a host function, or while a call uses the object, the object is
// destroyed afterwards.
#pragma once

#include <memory>
#include <utility>

#include "api/boundary/boundary.h"
#include "base/callbacks.h"
#include "base/in_use.h"
#include "base/status.h"

namespace gen::api {

/// Joins the tables of several objects; null if there are none.
inline SharedCallbacks joined(std::initializer_list<std::shared_ptr<Callbacks>> tables,
                              const SharedCallbacks& more = nullptr) {
  CallbackList all;
  if (more != nullptr) all = *more;
  for (const auto& table : tables) {
    if (table != nullptr) all.push_back(table);
  }
  return all.empty() ? nullptr : std::make_shared<const CallbackList>(std::move(all));
}

/// The scope of a call that may reach functions of the host. It refuses to run inside them and
/// destroys what was freed in them.
class Entry {
 public:
  explicit Entry(SharedCallbacks callbacks) noexcept : callbacks_(std::move(callbacks)) {}
  Entry(Entry&&) noexcept = default;
  Entry& operator=(Entry&&) = delete;
  ~Entry() {
    if (callbacks_ == nullptr) return;
    for (const auto& table : *callbacks_) table->settle();
  }

  /// The table whose function this thread is running, or null.
  [[nodiscard]] Callbacks* inside() const noexcept {
    if (callbacks_ == nullptr) return nullptr;
    for (const auto& table : *callbacks_) {
      if (table->inside()) return table.get();
    }
    return nullptr;
  }
  /// kBusy, naming `what`, inside such a function.
  [[nodiscard]] Status entered(const char* what) const noexcept {
    if (inside() == nullptr) return {};
    return error(Code::kBusy, "%s cannot be used inside a callback that it may call", what);
  }

 private:
  SharedCallbacks callbacks_;
};

/// An object that a call has entered, for the duration of the call.
template <typename T>
class Used {
 public:
  Used(Entry entry, std::shared_ptr<T> object) noexcept
      : entry_(std::move(entry)), object_(std::move(object)) {}
  T* operator->() const noexcept { return object_.get(); }
  T& operator*() const noexcept { return *object_; }
  [[nodiscard]] const std::shared_ptr<T>& shared() const noexcept { return object_; }

 private:
  Entry entry_;  // destroyed after the object
  std::shared_ptr<T> object_;
};

/// A handle's reference to an object that may have other owners.
template <typename T>
class Shared {
 public:
  Shared() noexcept = default;
  explicit Shared(std::shared_ptr<T> object, SharedCallbacks callbacks = nullptr) noexcept
      : object_(std::move(object)), callbacks_(std::move(callbacks)) {}

  /// For every call that is not allowed in callbacks.
  [[nodiscard]] Result<Used<T>> enter(const char* what) const {
    Entry entry(callbacks_);
    GEN_TRY(entry.entered(what));
    return Used<T>(std::move(entry), object_);
  }
  /// For access that neither changes nor waits: immutable members and getters that are allowed
  /// everywhere.
  [[nodiscard]] std::shared_ptr<T> keep() const noexcept { return object_; }
  [[nodiscard]] T& peek() const noexcept { return *object_; }
  [[nodiscard]] const SharedCallbacks& callbacks() const noexcept { return callbacks_; }

 private:
  std::shared_ptr<T> object_;
  SharedCallbacks callbacks_;
};

/// The body of every function that frees a handle whose destruction may call the host or wait. Like
/// end_handle() of boundary.h it does nothing in a child of fork().
template <typename H>
void end_handle(H* handle, const SharedCallbacks& callbacks) noexcept {
  if (!usable(handle)) return;
  const Entry entry(callbacks);
  if (Callbacks* const table = entry.inside(); table != nullptr) {
    handle->end = [](Postponed* self) noexcept { delete static_cast<H*>(self); };
    table->postpone(handle);
    return;
  }
  delete handle;
}

/// Holds the in-use flag of a handle for a scope. If the handle is freed meanwhile, in a callback
/// or by another thread, it is destroyed at the end of the scope.
template <typename H>
class HeldHandle {
 public:
  /// `end` frees the handle.
  HeldHandle(H* handle, InUseFlag* flag, void (*end)(H* handle)) noexcept
      : handle_(handle), flag_(flag->try_enter() ? flag : nullptr), end_(end) {}
  HeldHandle(HeldHandle&& other) noexcept
      : handle_(other.handle_), flag_(std::exchange(other.flag_, nullptr)), end_(other.end_) {}
  HeldHandle& operator=(HeldHandle&&) = delete;
  ~HeldHandle() {
    if (flag_ != nullptr && flag_->leave()) end_(handle_);
  }
  [[nodiscard]] Status entered(const char* what) const noexcept {
    return flag_ != nullptr ? Status() : error(Code::kBusy, "%s is in use by another call", what);
  }

 private:
  H* handle_;
  InUseFlag* flag_;
  void (*end_)(H* handle);
};

}  // namespace gen::api
