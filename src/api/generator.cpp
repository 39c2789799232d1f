// SPDX-License-Identifier: Apache-2.0
// generator.h of the C API: options, generators and one-shot generation.
#include <generate/generator.h>

#include "api/boundary.h"
#include "api/generating_call.h"
#include "api/handles.h"
#include "api/model_handle.h"
#include "api/option_table.h"
#include "cache/paged_cache.h"
#include "cache/registry.h"
#include "graph/plan_trace.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::OptionRow;

constexpr int32_t kMaxPrefillChunk = 512;

Status set_kv_dtype(gen_options& options, const char* name) {
  if (gen::cache::find_cache_kind(name) == nullptr) {
    return gen::error(Code::kInvalidArgument, "unknown kv dtype %.60s", name);
  }
  options.kv_dtype = name;
  return {};
}

Status set_paged_kv(gen_options& options, int64_t max_memory_mb, int64_t block_size) {
  constexpr int64_t kMost = INT32_MAX;
  if (max_memory_mb < 0 || max_memory_mb > kMost || block_size < 1 || block_size > kMost) {
    return gen::error(Code::kInvalidArgument,
                      "paged_kv of %lld MiB in blocks of %lld: outside [0, %lld] and [1, %lld]",
                      static_cast<long long>(max_memory_mb), static_cast<long long>(block_size),
                      static_cast<long long>(kMost), static_cast<long long>(kMost));
  }
  options.paged_mb = static_cast<int32_t>(max_memory_mb);
  options.paged_block_size = static_cast<int32_t>(block_size);
  return {};
}

/// "512" or "512,32".
Status paged_kv_from_text(gen_options& options, const char* text) {
  const std::string_view all = text;
  const size_t comma = all.find(',');
  GEN_ASSIGN(const int64_t mib, gen::api::parse_int(std::string(all.substr(0, comma)).c_str()));
  int64_t block_size = options.paged_block_size;
  if (comma != std::string_view::npos) {
    GEN_ASSIGN(block_size, gen::api::parse_int(std::string(all.substr(comma + 1)).c_str()));
  }
  return set_paged_kv(options, mib, block_size);
}

Status set_prefill_chunk(gen_options& options, int64_t tokens) {
  if (tokens < 1 || tokens > kMaxPrefillChunk) {
    return gen::error(Code::kInvalidArgument, "prefill_chunk %lld is outside [1, %d]",
                      static_cast<long long>(tokens), kMaxPrefillChunk);
  }
  options.prefill_chunk = static_cast<int32_t>(tokens);
  return {};
}

Status prefill_chunk_from_text(gen_options& options, const char* text) {
  GEN_ASSIGN(const int64_t tokens, gen::api::parse_int(text));
  return set_prefill_chunk(options, tokens);
}

const OptionRow<gen_options> kRows[] = {
    {"kv_dtype", "string", "a name of gen_kv_kind_describe", "fp32", set_kv_dtype,
     [](const gen_options& o) { return o.kv_dtype; }},
    {"paged_kv", "string", "MiB of the pool, or MiB,block size; 0 for no pool", "0,16",
     paged_kv_from_text,
     [](const gen_options& o) {
       return std::to_string(o.paged_mb) + "," + std::to_string(o.paged_block_size);
     }},
    {"prefill_chunk", "int", "1 to 512", "256", prefill_chunk_from_text,
     [](const gen_options& o) { return std::to_string(o.prefill_chunk); }},
};
static_assert(gen::generate::kDefaultPrefillChunk == 256, "the table's default");

}  // namespace

gen_status gen_options_new(gen_options** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_options;
    return {};
  });
}

void gen_options_free(gen_options* options) { delete options; }

gen_status gen_options_set_kv_dtype(gen_options* options, const char* name, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(name, "name"));
    return set_kv_dtype(*options, name);
  });
}

gen_status gen_options_set_paged_kv(gen_options* options, int32_t max_memory_mb, int32_t block_size,
                                    gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_paged_kv(*options, max_memory_mb, block_size);
  });
}

gen_status gen_options_set_prefill_chunk(gen_options* options, int32_t tokens, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_prefill_chunk(*options, tokens);
  });
}

gen_status gen_options_set(gen_options* options, const char* key, const char* value,
                           gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    return gen::api::set_by_name<gen_options>(kRows, *options, key, value);
  });
}

gen_status gen_options_describe(const gen_options* options, char* buf, size_t capacity, size_t* n,
                                gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return gen::api::text_out(gen::api::describe_options<gen_options>(kRows, *options), buf,
                              capacity, n);
  });
}

gen_status gen_kv_kind_describe(char* buf, size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error,
               [&] { return gen::api::text_out(gen::api::kv_kinds_json(), buf, capacity, n); });
}

gen_status gen_create(const gen_model* model, const gen_options* options, gen_generator** out,
                      gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(out, "out"));
    const gen_options defaults;
    const gen_options& chosen = options != nullptr ? *options : defaults;
    gen::generate::GeneratorOptions inner;
    inner.kv_dtype = chosen.kv_dtype;
    inner.prefill_chunk = chosen.prefill_chunk;
    inner.allocator = model->parts->allocator.get();
    if (chosen.trace != nullptr) {
      inner.tracer = std::make_shared<gen::graph::PlanTrace>(chosen.trace);
    }
    if (chosen.paged_mb > 0) {
      gen::Allocator& memory =
          inner.allocator != nullptr ? *inner.allocator : gen::system_allocator();
      GEN_ASSIGN(auto pool, gen::cache::CachePool::create(
                                chosen.kv_dtype, model->shared_model()->layer_shapes(),
                                chosen.paged_block_size, chosen.paged_mb, memory));
      inner.cache_factory = [pool](std::span<const gen::cache::LayerShape>, int32_t capacity) {
        return gen::cache::make_paged_cache(pool, capacity);
      };
    }
    auto handle = std::make_unique<gen_generator>();
    GEN_ASSIGN(handle->impl, gen::generate::Generator::create(
                                 model->shared_model(), model->tokenizer.impl, std::move(inner)));
    *out = handle.release();
    return {};
  });
}

void gen_free(gen_generator* generator) { delete generator; }

gen_status gen_generate(gen_generator* generator, const char* prompt, size_t len,
                        const gen_sampling* sampling, gen_result** result, gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_TRY(not_null(result, "result"));
    GEN_ASSIGN(auto session, generator->impl->new_session());
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
    GEN_ASSIGN(auto session, generator->impl->new_session());
    return gen::api::generating_call(session, prompt, len, sampling, callback, user, result);
  });
}
