// SPDX-License-Identifier: Apache-2.0
// What a session shows of its model's state. See session.h.
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

Result<Sequence::Point> Session::point() const {
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  return sequence_.point();
}

Status Session::go_back(const Sequence::Point& point) {
  const InUseGuard guard(&in_use_);
  GEN_TRY(guard.entered("session"));
  GEN_TRY(sequence_.go_back(point));
  note_cut(sequence_.length() + 1, sequence_.length());
  return {};
}

}  // namespace gen::generate
