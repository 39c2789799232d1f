// SPDX-License-Identifier: Apache-2.0
// See threads_in_use.h.
#include "base/threads_in_use.h"

#include <algorithm>

namespace gen {

int32_t ThreadsInUse::begin(int64_t now) noexcept {
  if (used_ == most_ || now < next_) return used_;
  used_ = std::min(used_ + more_, most_);
  more_ = std::min(2 * more_, most_);  // until one rests again
  trying_ = true;
  debt_ = 0;
  noted_ = now;
  next_ = now + rest_;
  return used_;
}

void ThreadsInUse::note(int64_t own, int64_t waited, int64_t now) noexcept {
  if (used_ == 1 || waited <= own) return;
  debt_ = std::max(debt_ - (now - noted_) / kPaidOff, int64_t{0}) + waited - own;
  noted_ = now;
  if (debt_ <= kPatience) return;
  // A trial that did not last as long as the rest before it came too early.
  rest_ = now >= next_ ? kFirstRest : trying_ ? std::min(4 * rest_, kLongestRest) : rest_;
  next_ = now + rest_;
  --used_;
  more_ = 1;
  trying_ = false;
  debt_ = 0;
}

}  // namespace gen
