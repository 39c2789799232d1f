// SPDX-License-Identifier: Apache-2.0
// See answer.h.
#include "answer.h"

#include <new>
#include <utility>

namespace server {

std::optional<Event> Answer::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (open_ == 0) return std::nullopt;
  arrived_.wait_for(lock, patience, [this] { return lost_ || !events_.empty(); });
  if (lost_) throw std::bad_alloc();
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  if (event.end) --open_;
  return event;
}

bool Answer::over() const {
  const std::lock_guard lock(mutex_);
  return open_ == 0;
}

void Answer::cancel() {
  cancelled_ = true;
  gen_cancel_fire(cancel_.get());
}

void Answer::push(Event event) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  } catch (const std::bad_alloc&) {
    return lose();
  }
  arrived_.notify_one();
}

void Answer::lose() noexcept {
  {
    const std::lock_guard lock(mutex_);
    lost_ = true;
  }
  arrived_.notify_one();
}

}  // namespace server
