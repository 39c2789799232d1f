// SPDX-License-Identifier: Apache-2.0
// What a session shows of its model's state. See session.h.
#include <utility>

#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "generate/step/scheduler.h"

namespace gen::generate {

Status Session::read_state(int32_t layer, std::array<int32_t, 3>* dims, float* to,
                           size_t capacity) {
  Participant participant(&generator_->scheduler().queue());
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  return sequence_.read_state(layer, dims, to, capacity, &participant);
}

Result<Session::Point> Session::point() const {
  const BlockHolder holder(&generator_->scheduler().queue());
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  Point made;
  GEN_ASSIGN(made.sequence, sequence_.point());
  made.answered = answered_;
  made.answered.mark = sequence_.moved(answered_.mark);
  return made;
}

Status Session::go_back(const Point& point) {
  const BlockHolder holder(&generator_->scheduler().queue());
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  Answered answered = point.answered;
  GEN_TRY(sequence_.go_back(point.sequence));
  answered.mark.dropped = sequence_.dropped();
  answered_ = std::move(answered);
  publish_length();
  return {};
}

}  // namespace gen::generate
