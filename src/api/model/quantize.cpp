// SPDX-License-Identifier: Apache-2.0
// gen_model_quantize of model.h and gen_model_quantize_with of quantize.h.
#include <generate/model.h>
#include <generate/quantize.h>

#include <functional>

#include "api/boundary/boundary.h"
#include "api/boundary/host_call.h"
#include "api/model/quantize_options.h"
#include "api/model/recipe.h"
#include "model/quantize_file.h"

namespace {

using gen::Status;
using gen::api::guard;
using gen::api::not_null;

}  // namespace

gen_status gen_model_quantize(const char* in, const char* out, const char* type,
                              gen_progress_callback progress, void* user, gen_error* error) {
  return gen_model_quantize_with(in, out, type, nullptr, progress, user, error);
}

gen_status gen_model_quantize_with(const char* in, const char* out, const char* type,
                                   const gen_quantize_options* options,
                                   gen_progress_callback progress, void* user, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(in, "in"));
    GEN_TRY(not_null(out, "out"));
    GEN_TRY(not_null(type, "type"));
    GEN_ASSIGN(const auto* const recipe, gen::api::recipe_of(type));
    // Copied: the callback may change or free the options.
    const gen_quantize_options used = options != nullptr ? *options : gen_quantize_options();
    gen::api::Progress report(progress, user);
    const Status done =
        gen::model::quantize_file(in, out, *recipe, used.importance, used.types, std::ref(report));
    GEN_TRY(report.thrown());
    return done;
  });
}
