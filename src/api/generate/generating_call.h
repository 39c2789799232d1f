// SPDX-License-Identifier: Apache-2.0
// The generating call behind gen_generate, gen_generate_stream and their session forms.
#pragma once

#include <generate/generator.h>

#include <functional>
#include <memory>

#include "api/generate/handles.h"

namespace gen::api {

/// Runs a call on `session`; `callback` and `result` may be null. Once generation has begun *result
/// is set, whatever the status.
Status generating_call(const std::shared_ptr<generate::Session>& session, const char* prompt,
                       size_t len, const gen_sampling* sampling, gen_token_callback callback,
                       void* user, gen_result** result);

/// The same for any kind of call, which `run` performs.
Status generating_call(
    const std::function<Status(const generate::CallParams& params, generate::EventCallback callback,
                               void* user, std::optional<generate::GenResult>* outcome)>& run,
    const gen_sampling* sampling, gen_token_callback callback, void* user, gen_result** result);

}  // namespace gen::api
