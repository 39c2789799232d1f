// SPDX-License-Identifier: Apache-2.0
// See generating_call.h.
#include "api/generate/generating_call.h"

#include "api/boundary/boundary.h"
#include "generate/loop/run.h"

namespace gen::api {
namespace {

struct Bridge {
  gen_token_callback callback;
  void* user;
  std::vector<gen_piece> pieces;
};

int32_t forward_event(void* user, const generate::Event& event) {
  Bridge& bridge = *static_cast<Bridge*>(user);
  gen_token token;
  fill_token(event, &bridge.pieces, &token);
  return bridge.callback(bridge.user, &token);
}

}  // namespace

Status generating_call(
    const std::function<Status(const generate::CallParams& params, generate::EventCallback callback,
                               void* user, std::optional<generate::GenResult>* outcome)>& run,
    const gen_sampling* sampling, gen_token_callback callback, void* user, gen_result** result) {
  Bridge bridge{callback, user, {}};
  // Allocated before anything runs, so that no result is lost for lack of memory.
  std::unique_ptr<gen_result> handle;
  if (result != nullptr) handle = std::make_unique<gen_result>();
  std::optional<generate::GenResult> outcome;
  const Status status =
      run(params_of(sampling), callback != nullptr ? forward_event : nullptr, &bridge, &outcome);
  if (outcome.has_value() && result != nullptr) {
    fill_result(std::move(*outcome), handle.get());
    *result = handle.release();
  }
  return status;
}

Status generating_call(const std::shared_ptr<generate::Session>& session, const char* prompt,
                       size_t len, const gen_sampling* sampling, gen_token_callback callback,
                       void* user, gen_result** result) {
  generate::Prompt what;
  GEN_ASSIGN(what.text, text_in(prompt, len, "prompt"));
  return generating_call(
      [&](const generate::CallParams& params, generate::EventCallback event, void* data,
          std::optional<generate::GenResult>* outcome) {
        return generate::run(session, what, params, event, data, outcome);
      },
      sampling, callback, user, result);
}

}  // namespace gen::api
