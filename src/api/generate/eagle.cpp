// SPDX-License-Identifier: Apache-2.0
// eagle.h of the C API.
#include <generate/eagle.h>

#include <memory>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/boundary/caller_struct.h"
#include "api/generate/drafting_generator.h"
#include "api/generate/handles.h"
#include "api/model/model_handle.h"
#include "model/draft_head.h"

struct gen_eagle : gen::api::DraftingGenerator {
  gen_eagle() noexcept : DraftingGenerator("the EAGLE generator") {}
};

namespace {

using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::generate::DraftChoice;

/// A generator with this head alone; null: that of the model's own file.
Status make_eagle(const gen_model& target, int32_t length, const gen_options* options,
                  const gen::api::AddHead& add_head, gen_eagle** out) {
  gen_options chosen = options != nullptr ? *options : gen_options();
  GEN_ASSIGN(chosen.drafts.heads_length, gen::api::drafting_length(length));
  chosen.eagle.clear();
  chosen.drafts.heads = gen::generate::UseHeads::kOn;
  auto handle = std::make_unique<gen_eagle>();
  GEN_TRY(gen::api::make_drafting(target, std::move(chosen), add_head, handle.get()));
  *out = handle.release();
  return {};
}

}  // namespace

gen_status gen_eagle_new(const gen_model* target, const char* path, int32_t length,
                         const gen_options* options, gen_eagle** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(target, "target"));
    GEN_TRY(not_null(out, "out"));
    gen::api::AddHead add_head;
    if (path != nullptr && path[0] != '\0') {
      add_head = [path](const gen::model::Model& model, DraftChoice* drafts) -> Status {
        GEN_ASSIGN(drafts->head, gen::api::head_of_file(model, path));
        drafts->head_file = path;
        return {};
      };
    }
    return make_eagle(*target, length, options, add_head, out);
  });
}

gen_status gen_eagle_new_tensors(const gen_model* target, const gen_eagle_tensors* tensors,
                                 int32_t length, const gen_options* options, gen_eagle** out,
                                 gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(target, "target"));
    GEN_TRY(not_null(tensors, "tensors"));
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const gen_eagle_tensors given, gen::api::read_struct(*tensors));
    const auto add_head = [&given](const gen::model::Model& model, DraftChoice* drafts) -> Status {
      GEN_ASSIGN(const auto of, model.head_target());
      const gen::model::MlpTensors mlp = {
          .hidden = given.hidden,
          .vocab_size = given.vocab_size,
          .norm_weight = given.norm_weight,
          .norm_bias = given.norm_bias,
          .fc1_weight = given.fc1_weight,
          .fc2_weight = given.fc2_weight,
          .lm_head = given.lm_head,
      };
      GEN_ASSIGN(drafts->head, gen::model::make_mlp_head(mlp, of));
      return {};
    };
    return make_eagle(*target, length, options, add_head, out);
  });
}

gen_status gen_eagle_generate(gen_eagle* eagle, const char* prompt, size_t len,
                              const gen_sampling* sampling, gen_result** result, gen_error* error) {
  return gen::api::drafting_generate(eagle, "eagle", prompt, len, sampling, result, error);
}

gen_status gen_eagle_generate_stream(gen_eagle* eagle, const char* prompt, size_t len,
                                     const gen_sampling* sampling, gen_token_callback callback,
                                     void* user, gen_result** result, gen_error* error) {
  return gen::api::drafting_stream(eagle, "eagle", prompt, len, sampling, callback, user, result,
                                   error);
}

gen_status gen_eagle_set_adaptive(gen_eagle* eagle, int32_t adaptive, gen_error* error) {
  return gen::api::drafting_set_adaptive(eagle, "eagle", adaptive, error);
}

gen_status gen_eagle_stats(const gen_eagle* eagle, const char* key, double* value,
                           gen_error* error) {
  return gen::api::drafting_stats(eagle, "eagle", key, value, error);
}

void gen_eagle_free(gen_eagle* eagle) {
  if (eagle != nullptr) gen::api::end_handle(eagle, eagle->shared.callbacks());
}
