// SPDX-License-Identifier: Apache-2.0
// gen_model_quantize of model.h.
#include <generate/model.h>

#include <functional>

#include "api/boundary/boundary.h"
#include "api/boundary/host_call.h"
#include "api/model/recipe.h"
#include "model/quantize_file.h"

namespace {

using gen::Status;
using gen::api::guard;
using gen::api::not_null;

}  // namespace

gen_status gen_model_quantize(const char* in, const char* out, const char* type,
                              gen_progress_callback progress, void* user, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(in, "in"));
    GEN_TRY(not_null(out, "out"));
    GEN_TRY(not_null(type, "type"));
    GEN_ASSIGN(const auto* const recipe, gen::api::recipe_of(type));
    gen::api::Progress report(progress, user);
    const Status done = gen::model::quantize_file(in, out, *recipe, std::ref(report));
    GEN_TRY(report.thrown());
    return done;
  });
}
