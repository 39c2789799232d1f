// SPDX-License-Identifier: Apache-2.0
// generator.h of the C API: generators and one-shot generation; its options are in options.cpp.
#include <generate/generator.h>

#include <array>
#include <utility>

#include "api/boundary.h"
#include "api/generating_call.h"
#include "api/handles.h"
#include "api/model_handle.h"
#include "api/option_table.h"
#include "cache/sequence/compressed_cache.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/tiered_cache.h"
#include "generate/metric_names.h"
#include "graph/plan_trace.h"

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::ModelParts;
using gen::api::not_null;
using gen::generate::GeneratorOptions;

gen::Allocator& memory_of(const GeneratorOptions& options) {
  return options.allocator != nullptr ? *options.allocator : gen::system_allocator();
}

/// What does not go together.
Status check_together(const gen_options& options, const ModelParts& parts) {
  const bool paged = options.paged_mb > 0;
  const bool compressed = options.compressed_chunk > 0;
  const bool tiered = options.tiered != nullptr;
  if ((paged || compressed || tiered) && parts.loaded->model->layer_shapes().empty()) {
    return {Code::kInvalidArgument,
            "the model keeps no keys and values: no paged_kv, compressed_kv or tiered_kv"};
  }
  if (compressed && (paged || options.kv.name() != std::string_view("fp32"))) {
    return {Code::kInvalidArgument,
            "compressed_kv keeps fp32 in memory of each session: no other kv_dtype, no paged_kv"};
  }
  if (tiered && (paged || compressed)) {
    return {Code::kInvalidArgument, "tiered_kv does not go with paged_kv or compressed_kv"};
  }
  if (options.prefix_blocks > 0 && !paged) {
    return {Code::kInvalidArgument, "prefix_cache keeps blocks of a pool: it needs paged_kv"};
  }
  return {};
}

Status use_chunks(int32_t chunk, const ModelParts& parts, GeneratorOptions* inner) {
  gen::Allocator& memory = memory_of(*inner);
  GEN_TRY(gen::cache::make_compressed_cache(parts.loaded->model->layer_shapes(), 1, 1, memory)
              .status());
  inner->cache_factory = [chunk, &memory](std::span<const gen::cache::LayerShape> shapes,
                                          int32_t capacity) {
    return gen::cache::make_compressed_cache(shapes, capacity, chunk, memory);
  };
  return {};
}

/// What has been counted since `told`.
void measure_tiers(const gen::cache::TierCounts& counts, std::array<uint64_t, 6>& told,
                   gen::Metrics& metrics) {
  namespace metric = gen::generate::metric;
  const std::pair<const char*, const std::atomic<uint64_t>&> all[] = {
      {metric::kTierDemotions, counts.demotions},
      {metric::kTierPromotions, counts.promotions},
      {metric::kTierBytesWritten, counts.bytes_written},
      {metric::kTierBytesRead, counts.bytes_read},
      {metric::kTierColdHits, counts.cold_hits},
      {metric::kTierWarmHits, counts.warm_hits},
  };
  for (size_t i = 0; i < told.size(); ++i) {
    const uint64_t now = all[i].second;
    metrics.add(all[i].first, static_cast<double>(now - told[i]));
    told[i] = now;
  }
}

/// Sessions whose caches are made as `inner` says by now, but tiered.
Status use_tiers(const kv_cache_tier_config& config, const ModelParts& parts,
                 GeneratorOptions* inner) {
  const gen::model::Model& model = *parts.loaded->model;
  const bool spare_cpu = parts.pool->size() < gen::usable_cpus();
  const auto shapes = model.layer_shapes();
  GEN_ASSIGN(gen::cache::TieredCacheOptions tiers,
             gen::api::session_tiers(config, inner->kv_dtype.c_str(), shapes.size(), spare_cpu));
  tiers.counts = std::make_shared<gen::cache::TierCounts>();
  inner->max_seq_len = config.store.max_seq_len;
  gen::Allocator& memory = memory_of(*inner);
  // What cannot be had is said now and not by each session.
  const int32_t context = inner->max_seq_len != 0 ? inner->max_seq_len : model.traits().max_seq_len;
  GEN_TRY(gen::cache::make_tiered_cache(tiers, shapes, context, memory).status());
  inner->cache_factory = [tiers, &memory](std::span<const gen::cache::LayerShape> layers,
                                          int32_t capacity) {
    return gen::cache::make_tiered_cache(tiers, layers, capacity, memory);
  };
  inner->measure_caches = [counts = tiers.counts,
                           told = std::array<uint64_t, 6>{}](gen::Metrics& metrics) mutable {
    measure_tiers(*counts, told, metrics);
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

/// One pool for all sessions and, if asked for, what earlier ones began with.
Status use_pool(const gen_options& options, const ModelParts& parts, GeneratorOptions* inner) {
  GEN_ASSIGN(auto pool, gen::cache::CachePool::create(
                            inner->kv_dtype, parts.loaded->model->layer_shapes(),
                            options.paged_block_size, options.paged_mb, memory_of(*inner)));
  inner->cache_factory = [pool](std::span<const gen::cache::LayerShape>, int32_t capacity) {
    return gen::cache::make_paged_cache(pool, capacity);
  };
  inner->measure_caches = [pool](gen::Metrics& metrics) { measure_pool(*pool, metrics); };
  if (options.prefix_blocks == 0) return {};
  std::shared_ptr<gen::cache::BlockPool> blocks(pool, &pool->blocks());
  GEN_ASSIGN(inner->prefix_cache,
             gen::cache::PrefixCache::create(std::move(blocks), options.prefix_blocks));
  inner->measure_caches = [pool, prefixes = inner->prefix_cache,
                           told = uint64_t{0}](gen::Metrics& metrics) mutable {
    measure_pool(*pool, metrics);
    const uint64_t evicted = prefixes->evicted();
    if (evicted == told) return;
    metrics.add(gen::generate::metric::kPrefixEvictions, static_cast<double>(evicted - told));
    told = evicted;
  };
  return {};
}

gen::Result<gen::cache::PrefixCache*> prefix_cache_of(const gen::generate::Generator& generator) {
  gen::cache::PrefixCache* const prefixes = generator.prefix_cache();
  if (prefixes != nullptr) return prefixes;
  return Status(Code::kState, "the generator has no prefix_cache");
}

gen::SharedCallbacks callbacks_of(const gen_model& model, const gen_options& options) {
  const auto sink = options.metrics != nullptr ? options.metrics->callbacks() : nullptr;
  return gen::api::joined({sink}, model.shared.callbacks());
}

}  // namespace

Result<std::unique_ptr<gen_generator>> gen::api::create_generator(const gen_model& model,
                                                                  const gen_options& options) {
  const auto parts = model.shared.keep();
  GEN_TRY(check_together(options, *parts));
  if (options.trace != nullptr) GEN_TRY(options.trace_home->check("the tracer"));
  if (options.metrics != nullptr && options.metrics_home.has_value()) {
    GEN_TRY(options.metrics_home->check("the metrics memory"));
  }
  GeneratorOptions inner;
  inner.kv_dtype = options.kv.name();
  inner.shift_context = options.shift_context;
  inner.context_keep = options.context_keep;
  inner.prefill_chunk = options.prefill_chunk;
  inner.max_sequences = options.max_batch;
  inner.max_queue = options.max_queue;
  inner.most_passed_over = options.fairness;
  inner.allocator = parts->allocator.get();
  inner.metrics = options.metrics;
  if (options.trace != nullptr) {
    inner.tracer = std::make_shared<gen::graph::PlanTrace>(options.trace);
  }
  if (options.compressed_chunk > 0) GEN_TRY(use_chunks(options.compressed_chunk, *parts, &inner));
  if (options.tiered != nullptr) GEN_TRY(use_tiers(*options.tiered, *parts, &inner));
  if (options.paged_mb > 0) GEN_TRY(use_pool(options, *parts, &inner));
  auto handle = std::make_unique<gen_generator>();
  GEN_ASSIGN(auto made, gen::generate::Generator::create(model_of(parts), parts->loaded->tokenizer,
                                                         std::move(inner)));
  handle->shared =
      Shared<const gen::generate::Generator>(std::move(made), callbacks_of(model, options));
  return handle;
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
    const gen_options chosen = options != nullptr ? *options : gen_options();
    const gen::api::Entry entry(callbacks_of(*model, chosen));
    GEN_TRY(entry.entered("the model"));
    GEN_ASSIGN(auto made, gen::api::create_generator(*model, chosen));
    *out = made.release();
    return {};
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
