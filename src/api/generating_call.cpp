// SPDX-License-Identifier: Apache-2.0
// See generating_call.h.
#include "api/generating_call.h"

#include "api/boundary.h"

namespace gen::api {
namespace {

struct Bridge {
  gen_token_callback callback;
  void* user;
};

int32_t forward_event(void* user, const generate::Event& event) {
  Bridge& bridge = *static_cast<Bridge*>(user);
  gen_token token;
  fill_token(event, &token);
  return bridge.callback(bridge.user, &token);
}

}  // namespace

Status generating_call(const std::shared_ptr<generate::Session>& session, const char* prompt,
                       size_t len, const gen_sampling* sampling, gen_token_callback callback,
                       void* user, gen_result** result) {
  GEN_ASSIGN(const auto text, text_in(prompt, len, "prompt"));
  Bridge bridge{callback, user};
  // Before anything runs, so that what has run is not lost for want of memory.
  std::unique_ptr<gen_result> handle;
  if (result != nullptr) handle = std::make_unique<gen_result>();
  generate::Prompt what;
  what.text = text;
  std::optional<generate::GenResult> outcome;
  const Status status =
      generate::run(session, what, params_of(sampling),
                    callback != nullptr ? forward_event : nullptr, &bridge, &outcome);
  if (outcome.has_value() && result != nullptr) {
    fill_result(std::move(*outcome), handle.get());
    *result = handle.release();
  }
  return status;
}

}  // namespace gen::api
