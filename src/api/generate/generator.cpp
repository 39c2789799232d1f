// SPDX-License-Identifier: Apache-2.0
// generator.h of the C API: generators and one-shot generation. options.cpp has the options.
#include <generate/generator.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/generate/generating_call.h"
#include "api/generate/handles.h"
#include "api/model/model_handle.h"
#include "api/boundary/option_table.h"
#include "base/io_error.h"
#include "base/json_text.h"
#include "cache/sequence/registry.h"
#include "graph/plan_trace.h"
#include "model/draft_head.h"
#include "model/gguf/gguf_file.h"

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::ModelParts;
using gen::api::not_null;
using gen::generate::GeneratorOptions;

/// The cache kinds of this build, as JSON.
std::string kv_kinds_json() {
  std::string out = "[";
  for (const auto& row : gen::cache::cache_kinds()) {
    out += (out.size() > 1 ? "," : "");
    out += "{\"name\":" + gen::json_quote(row.name) +
           ",\"bits_per_value\":" + std::to_string(row.bits_per_value) +
           ",\"lossy\":" + (row.lossy ? "true" : "false") + "}";
  }
  return out + "]";
}

gen::Result<gen::cache::PrefixCache*> prefix_cache_of(const gen::generate::Generator& generator) {
  gen::cache::PrefixCache* const prefixes = generator.prefix_cache();
  if (prefixes != nullptr) return prefixes;
  return Status(Code::kState, "the generator has no prefix_cache");
}

}  // namespace

gen::SharedCallbacks gen::api::callbacks_of(const gen_model& model, const gen_options& options) {
  const auto sink = options.metrics != nullptr ? options.metrics->callbacks() : nullptr;
  const auto both = joined({sink}, model.shared.callbacks());
  if (options.draft_callbacks == nullptr) return both;
  gen::CallbackList all = both != nullptr ? *both : gen::CallbackList();
  for (const auto& table : *options.draft_callbacks) {
    if (std::find(all.begin(), all.end(), table) == all.end()) all.push_back(table);
  }
  return std::make_shared<const gen::CallbackList>(std::move(all));
}

Result<std::shared_ptr<const gen::model::DraftHead>> gen::api::head_of_file(
    const gen::model::Model& model, const std::string& path) {
  auto file = gen::gguf::GgufFile::open(path);
  if (!file.ok()) return gen::in_file(path, file.status());
  const auto target = model.head_target();
  if (!target.ok()) return gen::in_file(path, target.status());
  auto head = gen::model::load_draft_head(std::move(file).value(), target.value(), false, true);
  if (!head.ok()) return gen::in_file(path, head.status());
  if (head.value() != nullptr) {
    model.note_head(head.value());
    return head;
  }
  return gen::in_file(path, gen::error(Code::kUnsupported, "the file has no head that drafts"));
}

Result<gen::generate::DraftChoice> gen::api::draft_choice(const gen_options& options,
                                                          const gen::model::Model& model) {
  gen::generate::DraftChoice choice = options.drafts;
  std::error_code failure;
  if (choice.off || options.eagle.empty()) return choice;
  if (!std::filesystem::exists(options.eagle, failure)) return choice;
  GEN_ASSIGN(choice.head, head_of_file(model, options.eagle));
  choice.head_file = options.eagle;
  return choice;
}

gen::generate::ModelInUse gen::api::in_use(const std::shared_ptr<const ModelParts>& parts) {
  return {model_of(parts), parts->loaded->tokenizer,
          parts->pool != nullptr && parts->pool->size() < gen::usable_cpus()};
}

gen::generate::CacheChoice gen::api::cache_choice(const gen_options& options) {
  gen::generate::CacheChoice choice = options.caches;
  if (options.tiered != nullptr) choice.tiered = tier_choice(*options.tiered);
  return choice;
}

Result<std::unique_ptr<gen_generator>> gen::api::create_generator(const gen_model& model,
                                                                  const gen_options& options) {
  const auto parts = model.shared.keep();
  if (options.trace != nullptr) GEN_TRY(options.trace_home->check("the tracer"));
  if (options.metrics != nullptr && options.metrics_home.has_value()) {
    GEN_TRY(options.metrics_home->check("the metrics memory"));
  }
  GeneratorOptions inner = options.generator;
  if (parts->engine != nullptr) inner.memory = &parts->engine->memory();
  inner.metrics = options.metrics;
  GEN_ASSIGN(auto drafts, draft_choice(options, *model_of(parts)));
  if (options.draft != nullptr) {
    drafts.draft = in_use(options.draft);
    if (options.draft->engine != nullptr) drafts.draft_memory = &options.draft->engine->memory();
  }
  const bool by_eagle = drafts.head != nullptr;
  GEN_ASSIGN(inner.drafter,
             gen::generate::make_drafter(drafts, in_use(parts), cache_choice(options), inner));
  if (options.trace != nullptr) {
    inner.tracer = std::make_shared<gen::graph::PlanTrace>(options.trace);
  }
  auto handle = std::make_unique<gen_generator>();
  GEN_ASSIGN(auto made, gen::generate::create_generator(in_use(parts), cache_choice(options),
                                                        std::move(inner)));
  handle->shared =
      Shared<const gen::generate::Generator>(std::move(made), callbacks_of(model, options));
  handle->eagle = options.eagle;
  handle->drafts = by_eagle;
  return handle;
}

gen_status gen_kv_kind_describe(char* buf, size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&] { return gen::api::text_out(kv_kinds_json(), buf, capacity, n); });
}

gen_status gen_create(const gen_model* model, const gen_options* options, gen_generator** out,
                      gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(out, "out"));
    const gen_options chosen = options != nullptr ? *options : gen_options();
    const gen::api::Entry entry(gen::api::callbacks_of(*model, chosen));
    GEN_TRY(entry.entered("the model"));
    GEN_ASSIGN(auto made, gen::api::create_generator(*model, chosen));
    *out = made.release();
    return {};
  });
}

gen_status gen_options_set_speculative_draft(gen_options* options, const gen_model* model,
                                             int32_t length, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(gen::api::check_range("speculative_draft length", length, gen::api::kAnyLeast,
                                  gen::generate::kMaxDraftLength));
    if (model != nullptr) GEN_TRY(model->home.check("the draft model"));
    options->draft = model != nullptr ? model->shared.keep() : nullptr;
    options->draft_callbacks = model != nullptr ? model->shared.callbacks() : nullptr;
    options->drafts.draft_length = length > 0 ? length : gen::generate::kDefaultDraftLength;
    return {};
  });
}

gen_status gen_options_set_eagle(gen_options* options, const char* path, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    options->eagle = path != nullptr ? path : "";
    return {};
  });
}

int gen_generator_eagle_enabled(const gen_generator* generator) {
  return gen::api::usable(generator) && generator->drafts ? 1 : 0;
}

gen_status gen_generator_eagle_path(const gen_generator* generator, char* buf, size_t capacity,
                                    size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
    return gen::api::text_out(generator->eagle, buf, capacity, n);
  });
}

void gen_free(gen_generator* generator) {
  if (generator != nullptr) gen::api::end_handle(generator, generator->shared.callbacks());
}

gen_status gen_generator_prefix_stats(const gen_generator* generator, const char* key,
                                      int64_t* value, gen_error* error) {
  if (value != nullptr) *value = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
    GEN_ASSIGN(const gen::cache::PrefixCache* prefixes, prefix_cache_of(*used));
    const gen::generate::PrefixUse& use = used->prefix_use();
    const std::pair<std::string_view, int64_t> all[] = {
        {"lookups", use.lookups.load(std::memory_order_relaxed)},
        {"hits", use.hits.load(std::memory_order_relaxed)},
        {"tokens", use.tokens.load(std::memory_order_relaxed)},
        {"blocks", prefixes->size()},
        {"evictions", static_cast<int64_t>(prefixes->evicted())},
    };
    for (const auto& [name, number] : all) {
      if (name != key) continue;
      *value = number;
      return {};
    }
    return gen::error(Code::kInvalidArgument,
                      "no prefix figure \"%.60s\" (lookups, hits, tokens, blocks, evictions)", key);
  });
}

gen_status gen_generator_prefix_clear(gen_generator* generator, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
    GEN_ASSIGN(gen::cache::PrefixCache * prefixes, prefix_cache_of(*used));
    prefixes->clear();
    return {};
  });
}

gen_status gen_generate(gen_generator* generator, const char* prompt, size_t len,
                        const gen_sampling* sampling, gen_result** result, gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
    GEN_ASSIGN(auto session, used->new_session());
    return gen::api::generating_call(session, prompt, len, sampling, nullptr, nullptr, result);
  });
}

gen_status gen_generate_stream(gen_generator* generator, const char* prompt, size_t len,
                               const gen_sampling* sampling, gen_token_callback callback,
                               void* user, gen_result** result, gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_TRY(not_null(reinterpret_cast<const void*>(callback), "callback"));
    GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
    GEN_ASSIGN(auto session, used->new_session());
    return gen::api::generating_call(session, prompt, len, sampling, callback, user, result);
  });
}
