// SPDX-License-Identifier: Apache-2.0
// generator.h of the C API: options, generators and one-shot generation.
#include <generate/generator.h>

#include <algorithm>

#include "api/boundary.h"
#include "api/generating_call.h"
#include "api/handles.h"
#include "api/model_handle.h"
#include "api/option_table.h"
#include "cache/compressed_cache.h"
#include "cache/paged_cache.h"
#include "cache/registry.h"
#include "generate/metric_names.h"
#include "graph/plan_trace.h"
#include "cache/tiered_cache.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::OptionRow;
using gen::cache::CacheFormat;
using gen::cache::KeyChoice;

constexpr int32_t kMaxPrefillChunk = 512;

Status set_kv_dtype(gen_options& options, const char* name) {
  GEN_ASSIGN(CacheFormat format, gen::cache::parse_cache_format(name));
  if (format.key_choice == KeyChoice::kBest) format.key_choice = options.kv.key_choice;
  options.kv = format;
  return {};
}

Status set_kv_types(gen_options& options, const char* keys, const char* values) {
  return set_kv_dtype(options, std::string(keys).append("/").append(values).c_str());
}

Status set_kv_key_form(gen_options& options, const char* name) {
  GEN_ASSIGN(options.kv.key_choice, gen::cache::find_key_choice(name));
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

Status set_prefix_cache(gen_options& options, int64_t blocks) {
  if (blocks < 0 || blocks > INT32_MAX) {
    return gen::error(Code::kInvalidArgument, "prefix_cache of %lld blocks: outside [0, %d]",
                      static_cast<long long>(blocks), INT32_MAX);
  }
  options.prefix_blocks = static_cast<int32_t>(blocks);
  return {};
}

Status prefix_cache_from_text(gen_options& options, const char* text) {
  GEN_ASSIGN(const int64_t blocks, gen::api::parse_int(text));
  return set_prefix_cache(options, blocks);
}

Status set_compressed_kv(gen_options& options, int64_t chunk) {
  if (chunk < 0 || chunk > INT32_MAX) {
    return gen::error(Code::kInvalidArgument, "compressed_kv in chunks of %lld: outside [0, %d]",
                      static_cast<long long>(chunk), INT32_MAX);
  }
  options.compressed_chunk = static_cast<int32_t>(chunk);
  return {};
}

Status compressed_kv_from_text(gen_options& options, const char* text) {
  GEN_ASSIGN(const int64_t chunk, gen::api::parse_int(text));
  return set_compressed_kv(options, chunk);
}

/// "512" or "folder,512"; empty or "0" for none. A folder may hold commas.
Status tiered_kv_from_text(gen_options& options, const char* text) {
  const std::string_view all = text;
  if (all.empty() || all == "0") {
    options.tiered = nullptr;
    return {};
  }
  const size_t comma = all.rfind(',');
  auto config = std::make_shared<kv_cache_tier_config>();
  if (comma != std::string_view::npos) config->store.cold_dir = all.substr(0, comma);
  const size_t number = comma == std::string_view::npos ? 0 : comma + 1;
  GEN_ASSIGN(const int64_t mib, gen::api::parse_int(std::string(all.substr(number)).c_str()));
  GEN_TRY(gen::api::set_hot_memory(*config, mib));
  options.tiered = std::move(config);
  return {};
}

std::string tiered_kv_text(const gen_options& options) {
  if (options.tiered == nullptr) return "";
  const std::string& folder = options.tiered->store.cold_dir;
  return (folder.empty() ? "" : folder + ",") + std::to_string(options.tiered->hot_mb);
}

/// Sessions whose caches are made as `inner` says by now, but tiered.
Status use_tiers(const kv_cache_tier_config& config, const gen_model& handle,
                 gen::generate::GeneratorOptions* inner) {
  const auto shared = handle.shared_model();
  const gen::model::Model& model = *shared;
  const bool spare_cpu = handle.parts->pool->size() < gen::usable_cpus();
  const auto shapes = model.layer_shapes();
  GEN_ASSIGN(const gen::cache::TieredCacheOptions tiers,
             gen::api::session_tiers(config, inner->kv_dtype.c_str(), shapes.size(), spare_cpu));
  inner->max_seq_len = config.store.max_seq_len;
  gen::Allocator& memory =
      inner->allocator != nullptr ? *inner->allocator : gen::system_allocator();
  // What cannot be had is said now and not by each session.
  const int32_t context = inner->max_seq_len != 0 ? inner->max_seq_len : model.traits().max_seq_len;
  GEN_TRY(gen::cache::make_tiered_cache(tiers, shapes, context, memory).status());
  inner->cache_factory = [tiers, &memory](std::span<const gen::cache::LayerShape> layers,
                                          int32_t capacity) {
    return gen::cache::make_tiered_cache(tiers, layers, capacity, memory);
  };
  return {};
}

void measure_pool(gen::cache::CachePool& pool, gen::Metrics& metrics) {
  namespace metric = gen::generate::metric;
  const gen::cache::BlockPool& blocks = pool.blocks();
  const size_t unused = blocks.available();
  metrics.set(metric::kCacheBlocksUsed, static_cast<double>(blocks.capacity() - unused));
  metrics.set(metric::kCacheBlocksFree, static_cast<double>(unused));
  metrics.set(metric::kCacheFragmentation, blocks.fragmentation());
}

/// A model of the caller's keeps nothing in caches.
Status check_keeps_layers(const gen_options& options, const gen_model& model) {
  const bool special =
      options.paged_mb > 0 || options.compressed_chunk > 0 || options.tiered != nullptr;
  if (!special || !model.shared_model()->layer_shapes().empty()) return {};
  return {Code::kInvalidArgument,
          "the model keeps no keys and values: no paged_kv, compressed_kv or tiered_kv"};
}

Status set_context_policy(gen_options& options, std::string_view name, int64_t keep) {
  if (name != "stop" && name != "shift") {
    return gen::error(Code::kInvalidArgument, "unknown context_policy \"%.*s\": stop or shift",
                      static_cast<int>(std::min<size_t>(name.size(), 40)), name.data());
  }
  if (keep < 0 || keep > INT32_MAX) {
    return gen::error(Code::kInvalidArgument, "context_policy keeps %lld tokens, outside [0, %d]",
                      static_cast<long long>(keep), INT32_MAX);
  }
  options.shift_context = name == "shift";
  options.context_keep = static_cast<int32_t>(keep);
  return {};
}

/// "stop", "shift" or "shift,4".
Status context_policy_from_text(gen_options& options, const char* text) {
  const std::string_view all = text;
  const size_t comma = all.find(',');
  int64_t keep = gen::generate::kDefaultContextKeep;
  if (comma != std::string_view::npos) {
    GEN_ASSIGN(keep, gen::api::parse_int(std::string(all.substr(comma + 1)).c_str()));
  }
  return set_context_policy(options, all.substr(0, comma), keep);
}

Status set_prefill_chunk(gen_options& options, int64_t tokens) {
  if (tokens < 1 || tokens > kMaxPrefillChunk) {
    return gen::error(Code::kInvalidArgument, "prefill_chunk %lld is outside [1, %d]",
                      static_cast<long long>(tokens), kMaxPrefillChunk);
  }
  options.prefill_chunk = static_cast<int32_t>(tokens);
  return {};
}

constexpr int32_t kMostBatch = 512;

Status set_max_batch(gen_options& options, int64_t sequences) {
  if (sequences < 1 || sequences > kMostBatch) {
    return gen::error(Code::kInvalidArgument, "max_batch %lld is outside [1, %d]",
                      static_cast<long long>(sequences), kMostBatch);
  }
  options.max_batch = static_cast<int32_t>(sequences);
  return {};
}

Status max_batch_from_text(gen_options& options, const char* text) {
  GEN_ASSIGN(const int64_t sequences, gen::api::parse_int(text));
  return set_max_batch(options, sequences);
}

// A queue of INT32_MAX / 2 is as good as none; sums with max_batch fit.
Status set_max_queue(gen_options& options, int64_t calls) {
  constexpr int32_t kMost = INT32_MAX / 2;
  if (calls < 0 || calls > INT32_MAX) {
    return gen::error(Code::kInvalidArgument, "max_queue %lld is outside [0, %d]",
                      static_cast<long long>(calls), INT32_MAX);
  }
  options.max_queue = static_cast<int32_t>(std::min<int64_t>(calls, kMost));
  return {};
}

Status max_queue_from_text(gen_options& options, const char* text) {
  GEN_ASSIGN(const int64_t calls, gen::api::parse_int(text));
  return set_max_queue(options, calls);
}

Status prefill_chunk_from_text(gen_options& options, const char* text) {
  GEN_ASSIGN(const int64_t tokens, gen::api::parse_int(text));
  return set_prefill_chunk(options, tokens);
}

const OptionRow<gen_options> kRows[] = {
    {"kv_dtype", "string", "a name of gen_kv_kind_describe, or keys/values", "fp32", set_kv_dtype,
     [](const gen_options& o) {
       return std::string(CacheFormat{o.kv.keys, o.kv.values}.name());
     }},
    {"kv_key_form", "string", "best, rotated or hadamard", "best", set_kv_key_form,
     [](const gen_options& o) { return std::string(key_choice_name(o.kv.key_choice)); }},
    {"paged_kv", "string", "MiB of the pool, or MiB,block size; 0 for no pool", "0,16",
     paged_kv_from_text,
     [](const gen_options& o) {
       return std::to_string(o.paged_mb) + "," + std::to_string(o.paged_block_size);
     }},
    {"prefix_cache", "int", "blocks of the pool kept for prompts that begin alike; 0 for none", "0",
     prefix_cache_from_text, [](const gen_options& o) { return std::to_string(o.prefix_blocks); }},
    {"compressed_kv", "int", "positions of a chunk that becomes one; 0 for none", "0",
     compressed_kv_from_text,
     [](const gen_options& o) { return std::to_string(o.compressed_chunk); }},
    {"tiered_kv", "string", "folder,MiB of memory, or MiB; empty for none", "", tiered_kv_from_text,
     tiered_kv_text},
    {"context_policy", "string", "stop, shift or shift,TOKENS KEPT", "stop",
     context_policy_from_text,
     [](const gen_options& o) {
       return o.shift_context ? std::string("shift,") + std::to_string(o.context_keep)
                              : std::string("stop");
     }},
    {"prefill_chunk", "int", "1 to 512", "256", prefill_chunk_from_text,
     [](const gen_options& o) { return std::to_string(o.prefill_chunk); }},
    {"max_batch", "int", "1 to 512", "64", max_batch_from_text,
     [](const gen_options& o) { return std::to_string(o.max_batch); }},
    {"max_queue", "int", "0 and up; 0 for no limit", "0", max_queue_from_text,
     [](const gen_options& o) { return std::to_string(o.max_queue); }},
};
static_assert(gen::generate::kDefaultPrefillChunk == 256, "the table's default");
static_assert(gen::generate::kDefaultMaxSequences == 64, "the table's default");

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

gen_status gen_options_set_kv_types(gen_options* options, const char* keys, const char* values,
                                    gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(keys, "keys"));
    GEN_TRY(not_null(values, "values"));
    return set_kv_types(*options, keys, values);
  });
}

gen_status gen_options_set_kv_key_form(gen_options* options, const char* name, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(name, "name"));
    return set_kv_key_form(*options, name);
  });
}

gen_status gen_options_set_paged_kv(gen_options* options, int32_t max_memory_mb, int32_t block_size,
                                    gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_paged_kv(*options, max_memory_mb, block_size);
  });
}

gen_status gen_options_set_prefix_cache(gen_options* options, int32_t blocks, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_prefix_cache(*options, blocks);
  });
}

gen_status gen_options_set_compressed_kv(gen_options* options, int32_t chunk, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_compressed_kv(*options, chunk);
  });
}

gen_status gen_options_set_tiered_kv(gen_options* options, const kv_cache_tier_config* config,
                                     gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    options->tiered =
        config != nullptr ? std::make_shared<const kv_cache_tier_config>(*config) : nullptr;
    return {};
  });
}

gen_status gen_options_set_context_policy(gen_options* options, const char* policy, int32_t keep,
                                          gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    GEN_TRY(not_null(policy, "policy"));
    return set_context_policy(*options, policy, keep);
  });
}

gen_status gen_options_set_prefill_chunk(gen_options* options, int32_t tokens, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_prefill_chunk(*options, tokens);
  });
}

gen_status gen_options_set_max_batch(gen_options* options, int32_t sequences, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_max_batch(*options, sequences);
  });
}

gen_status gen_options_set_max_queue(gen_options* options, int32_t calls, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(options, "options"));
    return set_max_queue(*options, calls);
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
    GEN_TRY(check_keeps_layers(chosen, *model));
    gen::generate::GeneratorOptions inner;
    inner.kv_dtype = chosen.kv.name();
    inner.shift_context = chosen.shift_context;
    inner.context_keep = chosen.context_keep;
    inner.prefill_chunk = chosen.prefill_chunk;
    inner.max_sequences = chosen.max_batch;
    inner.max_queue = chosen.max_queue;
    inner.allocator = model->parts->allocator.get();
    gen::Allocator& memory =
        inner.allocator != nullptr ? *inner.allocator : gen::system_allocator();
    if (chosen.compressed_chunk > 0) {
      if (chosen.paged_mb > 0 || chosen.kv.name() != std::string_view("fp32")) {
        return {
            Code::kInvalidArgument,
            "compressed_kv keeps fp32 in memory of each session: no other kv_dtype, no paged_kv"};
      }
      GEN_TRY(gen::cache::make_compressed_cache(model->shared_model()->layer_shapes(), 1, 1, memory)
                  .status());
      inner.cache_factory = [chunk = chosen.compressed_chunk, &memory](
                                std::span<const gen::cache::LayerShape> shapes, int32_t capacity) {
        return gen::cache::make_compressed_cache(shapes, capacity, chunk, memory);
      };
    }
    inner.metrics = chosen.metrics;
    if (chosen.trace != nullptr) {
      inner.tracer = std::make_shared<gen::graph::PlanTrace>(chosen.trace);
    }
    if (chosen.tiered != nullptr && (chosen.paged_mb > 0 || chosen.compressed_chunk > 0)) {
      return {Code::kInvalidArgument, "tiered_kv does not go with paged_kv or compressed_kv"};
    }
    if (chosen.tiered != nullptr) {
      GEN_TRY(use_tiers(*chosen.tiered, *model, &inner));
    }
    if (chosen.prefix_blocks > 0 && chosen.paged_mb == 0) {
      return {Code::kInvalidArgument, "prefix_cache keeps blocks of a pool: it needs paged_kv"};
    }
    if (chosen.paged_mb > 0) {
      GEN_ASSIGN(auto pool, gen::cache::CachePool::create(
                                inner.kv_dtype, model->shared_model()->layer_shapes(),
                                chosen.paged_block_size, chosen.paged_mb, memory));
      inner.cache_factory = [pool](std::span<const gen::cache::LayerShape>, int32_t capacity) {
        return gen::cache::make_paged_cache(pool, capacity);
      };
      inner.measure_caches = [pool](gen::Metrics& metrics) { measure_pool(*pool, metrics); };
      if (chosen.prefix_blocks > 0) {
        std::shared_ptr<gen::cache::BlockPool> blocks(pool, &pool->blocks());
        GEN_ASSIGN(inner.prefix_cache,
                   gen::cache::PrefixCache::create(std::move(blocks), chosen.prefix_blocks));
        inner.measure_caches = [pool, prefixes = inner.prefix_cache,
                                told = uint64_t{0}](gen::Metrics& metrics) mutable {
          measure_pool(*pool, metrics);
          const uint64_t evicted = prefixes->evicted();
          if (evicted == told) return;
          metrics.add(gen::generate::metric::kPrefixEvictions, static_cast<double>(evicted - told));
          told = evicted;
        };
      }
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
