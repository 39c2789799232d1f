// SPDX-License-Identifier: Apache-2.0
// gen_adapter_merge of adapter.h.
#include <generate/adapter.h>

#include <functional>

#include "api/boundary/boundary.h"
#include "api/boundary/host_call.h"
#include "api/model/recipe.h"
#include "model/merge_file.h"

namespace {

using gen::Status;
using gen::api::guard;
using gen::api::not_null;

}  // namespace

gen_status gen_adapter_merge(const char* model, const char* adapter, float scale, const char* out,
                             const char* type, gen_progress_callback progress, void* user,
                             gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(adapter, "adapter"));
    GEN_TRY(not_null(out, "out"));
    const gen::model::QuantRecipe* recipe = nullptr;
    if (type != nullptr && *type != '\0') {
      GEN_ASSIGN(recipe, gen::api::recipe_of(type));
    }
    gen::api::Progress report(progress, user);
    const Status done =
        gen::model::merge_file(model, adapter, scale, out, recipe, std::ref(report));
    GEN_TRY(report.thrown());
    return done;
  });
}
