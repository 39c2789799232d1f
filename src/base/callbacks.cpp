// SPDX-License-Identifier: Apache-2.0
// See callbacks.h.
#include "base/callbacks.h"

namespace gen {

Callbacks::Inside::Inside(Callbacks& callbacks) noexcept
    : callbacks_(callbacks), thread_(std::this_thread::get_id()) {
  const std::lock_guard lock(callbacks_.mutex_);
  next_ = callbacks_.open_;
  callbacks_.open_ = this;
  callbacks_.count_.fetch_add(1, std::memory_order_relaxed);
}

Callbacks::Inside::~Inside() {
  const std::lock_guard lock(callbacks_.mutex_);
  Inside** link = &callbacks_.open_;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
  callbacks_.count_.fetch_sub(1, std::memory_order_relaxed);
}

bool Callbacks::holds_locked(std::thread::id thread) const noexcept {
  for (const Inside* scope = open_; scope != nullptr; scope = scope->next_) {
    if (scope->thread_ == thread) return true;
  }
  return false;
}

bool Callbacks::holds(std::thread::id thread) const noexcept {
  const std::lock_guard lock(mutex_);
  return holds_locked(thread);
}

void Callbacks::postpone(Postponed* object) noexcept {
  object->asked_by = std::this_thread::get_id();
  object->next = nullptr;
  const std::lock_guard lock(mutex_);
  Postponed** link = &first_;
  while (*link != nullptr) link = &(*link)->next;
  *link = object;
  waiting_.store(true, std::memory_order_relaxed);
}

Postponed* Callbacks::take_one() noexcept {
  const std::lock_guard lock(mutex_);
  Postponed** link = &first_;
  while (*link != nullptr && holds_locked((*link)->asked_by)) link = &(*link)->next;
  Postponed* const found = *link;
  if (found != nullptr) *link = found->next;
  waiting_.store(first_ != nullptr, std::memory_order_relaxed);
  return found;
}

void Callbacks::end_waiting() noexcept {
  if (inside()) return;  // a call within a callback; the one around it comes by here, too
  while (Postponed* const object = take_one()) object->end(object);
}

}  // namespace gen
