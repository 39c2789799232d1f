// SPDX-License-Identifier: Apache-2.0
// See run.h.
#include "generate/loop/run.h"

#include <exception>
#include <new>
#include <utility>

#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"

namespace gen::generate {

Status callback_failure() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "no memory in the callback"};
  } catch (const std::exception& exception) {
    return error(Code::kInternal, "the callback threw: %s", exception.what());
  } catch (...) {
    return {Code::kInternal, "the callback threw"};
  }
}

Status pull_all(Generation* generation, EventCallback callback, void* user) {
  while (!generation->ended()) {
    GEN_ASSIGN(const Event* const event, generation->next());
    if (callback == nullptr) continue;
    try {
      const int32_t answer = callback(user, *event);
      if (answer != 0) generation->stop(answer);
    } catch (...) {
      generation->break_off(callback_failure());
    }
  }
  return generation->result().status;
}

Status run(std::shared_ptr<Session> session, const Prompt& prompt, const CallParams& params,
           EventCallback callback, void* user, std::optional<GenResult>* result) {
  result->reset();
  GEN_ASSIGN(auto generation, Generation::open(std::move(session), prompt, params));
  Status status = pull_all(generation.get(), callback, user);
  if (generation->ended()) result->emplace(generation->take_result());
  return status;
}

Status Session::generate(const Prompt& prompt, const CallParams& params, EventCallback callback,
                         void* user, std::optional<GenResult>* result) {
  return run(shared_from_this(), prompt, params, callback, user, result);
}

Result<std::unique_ptr<Generation>> Session::open(const Prompt& prompt, CallParams params) {
  return Generation::open(shared_from_this(), prompt, std::move(params));
}

Status Generator::generate(const Prompt& prompt, const CallParams& params, EventCallback callback,
                           void* user, std::optional<GenResult>* result) const {
  result->reset();
  GEN_ASSIGN(auto session, new_session());
  return run(std::move(session), prompt, params, callback, user, result);
}

}  // namespace gen::generate
