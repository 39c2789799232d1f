// SPDX-License-Identifier: Apache-2.0
// gen_model_importance of model.h.
#include <generate/model.h>

#include <functional>

#include "api/boundary/boundary.h"
#include "api/boundary/host_call.h"
#include "api/model/model_handle.h"
#include "base/utf8.h"
#include "engine/memory/host_memory.h"
#include "generate/importance.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;

}  // namespace

gen_status gen_model_importance(const gen_model* model, const int32_t* tokens, size_t n,
                                int32_t context, const char* text_name, const char* out,
                                gen_progress_callback progress, void* user, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(tokens, "tokens"));
    GEN_TRY(not_null(out, "out"));
    gen::generate::ImportanceRun run;
    run.tokens = {tokens, n};
    run.window = context;
    if (text_name != nullptr) run.dataset = text_name;
    if (!gen::utf8_valid(run.dataset)) return {Code::kInvalidArgument, "text_name is not UTF-8"};
    GEN_ASSIGN(const auto used, model->shared.enter("the model"));
    if (const auto& tokenizer = used->loaded->tokenizer; tokenizer != nullptr) {
      if (tokenizer->spec().add_bos) run.bos = tokenizer->spec().bos;
    }
    gen::api::Progress report(progress, user);
    gen::engine::EngineMemory& memory =
        used->engine != nullptr ? used->engine->memory() : gen::engine::system_memory();
    const Status done =
        gen::generate::write_importance(*used->loaded->model, memory, run, out, std::ref(report));
    GEN_TRY(report.thrown());
    return done;
  });
}
