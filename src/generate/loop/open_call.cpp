// SPDX-License-Identifier: Apache-2.0
// See open_call.h.
#include "generate/loop/open_call.h"

#include "generate/loop/generator.h"
#include "generate/step/scheduler.h"

namespace gen::generate {

bool OpenCall::has_room(const Generator& generator) noexcept {
  const int32_t queue = generator.options().max_queue;
  return queue <= 0 || generator.open_calls() < generator.options().max_sequences + queue;
}

Status OpenCall::enter(const Generator& generator, std::optional<OpenCall>* call) {
  const int32_t queue = generator.options().max_queue;
  // Counted only if admitted, so that a refused call takes no place.
  int32_t open = generator.open_calls();
  do {
    if (queue > 0 && open >= generator.options().max_sequences + queue) {
      return error(Code::kBusy, "the queue is full: %d calls of at most %d run and %d wait", open,
                   generator.options().max_sequences, queue);
    }
  } while (!generator.open_calls().compare_exchange_weak(open, open + 1));
  try {
    call->emplace(generator);
  } catch (...) {
    generator.open_calls().fetch_sub(1);
    throw;
  }
  return {};
}

OpenCall::OpenCall(const Generator& generator)
    : generator_(generator), participant_(&generator.scheduler().queue()) {}

void OpenCall::end() noexcept {
  if (!open_) return;
  open_ = false;
  generator_.open_calls().fetch_sub(1);
  generator_.scheduler().queue().note_ended(&participant_);
}

}  // namespace gen::generate
