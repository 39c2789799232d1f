// SPDX-License-Identifier: Apache-2.0
// gen_model_forward of model.h.
#include <generate/model.h>

#include "api/boundary/boundary.h"
#include "api/forward/forward_call.h"

using gen::Status;
using gen::api::guard;
using gen::api::not_null;

gen_status gen_model_forward(const gen_model* model, const int32_t* tokens, size_t n,
                             kv_cache* cache, float* logits, size_t capacity, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(tokens, "tokens"));
    GEN_TRY(not_null(cache, "cache"));
    GEN_TRY(not_null(logits, "logits"));
    GEN_ASSIGN(const auto used, model->shared.enter("the model"));
    return gen::api::forward_one({used.shared(), model->shared.callbacks()}, {tokens, n}, *cache,
                                 logits, capacity);
  });
}
