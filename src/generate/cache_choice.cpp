// SPDX-License-Identifier: Apache-2.0
// See cache_choice.h.
#include "generate/cache_choice.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/sequence/compressed_cache.h"
#include "cache/sequence/layer_memories.h"
#include "cache/sequence/paged_cache.h"
#include "engine/memory/host_memory.h"
#include "generate/request/metric_names.h"

namespace gen::generate {
namespace {

/// The memory of each layer's cache.
std::vector<engine::EngineMemory*> memories_of(const model::Model& model,
                                               const GeneratorOptions& options) {
  return model::memories_of_layers(
      model, options.memory != nullptr ? *options.memory : engine::system_memory());
}

/// Refuses options that exclude each other.
Status check_together(const CacheChoice& choice) {
  const bool paged = choice.paged_mb > 0;
  const bool compressed = choice.compressed_chunk > 0;
  const bool tiered = choice.tiered.has_value();
  if (compressed &&
      (paged || choice.format.name() != std::string_view(cache::CacheFormat().name()))) {
    return {Code::kInvalidArgument,
            "compressed_kv keeps fp32 in memory of each session: no other kv_dtype, no paged_kv"};
  }
  if (tiered && (paged || compressed)) {
    return {Code::kInvalidArgument, "tiered_kv does not go with paged_kv or compressed_kv"};
  }
  if (choice.prefix_blocks > 0 && !paged) {
    return {Code::kInvalidArgument, "prefix_cache keeps blocks of a pool: it needs paged_kv"};
  }
  return {};
}

Status use_chunks(int32_t chunk, const model::Model& model, GeneratorOptions* options) {
  const auto make = [memories = memories_of(model, *options)](
                        std::span<const cache::LayerShape> shapes, int32_t capacity, int32_t size) {
    return cache::make_in_memories(
        shapes, memories,
        [&](std::span<const cache::LayerShape> layers, engine::EngineMemory& memory) {
          return cache::make_compressed_cache(layers, capacity, size, memory);
        });
  };
  if (const Status status = make(model.layer_shapes(), 1, 1).status(); !status.ok()) {
    if (status.code() == Code::kOutOfMemory) return status;
    return error(status.code(), "compressed_kv: %s", status.message());
  }
  options->cache_factory = [chunk, make](std::span<const cache::LayerShape> shapes,
                                         int32_t capacity) {
    return make(shapes, capacity, chunk);
  };
  return {};
}

/// Adds what the counters gained since `told` to the metrics.
void measure_tiers(const cache::TierCounts& counts, std::array<uint64_t, 6>& told,
                   Metrics& metrics) {
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

/// The share of the memory budget of all layers that `some` layers get.
cache::TieredCacheOptions share_of(const cache::TieredCacheOptions& tiers,
                                   std::span<const cache::LayerShape> some,
                                   std::span<const cache::LayerShape> all) {
  const auto size = [](std::span<const cache::LayerShape> layers) {
    double sum = 0.0;
    for (const cache::LayerShape& layer : layers) {
      sum += static_cast<double>(layer.kv_heads) * (layer.k_dim + layer.v_dim);
    }
    return sum;
  };
  cache::TieredCacheOptions share = tiers;
  if (some.size() == all.size()) return share;
  share.hot_bytes =
      static_cast<size_t>(static_cast<double>(tiers.hot_bytes) * (size(some) / size(all)));
  return share;
}

/// Makes the caches of sessions tiered; the other options stay.
Status use_tiers(const TierChoice& choice, const ModelInUse& in_use, GeneratorOptions* options) {
  const model::Model& model = *in_use.model;
  const auto shapes = model.layer_shapes();
  if (choice.num_layers != 0 && static_cast<size_t>(choice.num_layers) != shapes.size()) {
    return error(Code::kInvalidArgument, "tiered_kv for %d layers, the model has %zu cache layers",
                 choice.num_layers, shapes.size());
  }
  cache::TieredCacheOptions tiers;
  tiers.format = options->kv_dtype;
  tiers.cold_dir = choice.cold_dir;
  tiers.hot_bytes = static_cast<size_t>(choice.hot_mb) << 20;
  tiers.hot_blocks = choice.hot_blocks;
  tiers.block_size = choice.block_size;
  tiers.prefetch_layers = choice.prefetch_layers;
  if (tiers.prefetch_layers < 0) tiers.prefetch_layers = in_use.spare_cpu ? 1 : 0;
  tiers.counts = std::make_shared<cache::TierCounts>();
  options->max_seq_len = choice.max_seq_len;
  if (shapes.empty()) return {};
  options->cache_factory = [tiers, memories = memories_of(model, *options)](
                               std::span<const cache::LayerShape> all, int32_t capacity) {
    return cache::make_in_memories(
        all, memories,
        [&](std::span<const cache::LayerShape> layers, engine::EngineMemory& memory) {
          return cache::make_tiered_cache(share_of(tiers, layers, all), layers, capacity, memory);
        });
  };
  // Makes one cache now, so that an error is reported here and not by each session.
  const int32_t context =
      options->max_seq_len != 0 ? options->max_seq_len : model.traits().max_seq_len;
  GEN_TRY(options->cache_factory(shapes, context).status());
  options->measure_caches = [counts = tiers.counts,
                             told = std::array<uint64_t, 6>{}](Metrics& metrics) mutable {
    measure_tiers(*counts, told, metrics);
  };
  return {};
}

void measure_pool(cache::CachePool& pool, Metrics& metrics) {
  const cache::BlockPool& blocks = pool.blocks();
  const size_t unused = blocks.available();
  metrics.set(metric::kCacheBlocksUsed, static_cast<double>(blocks.capacity() - unused));
  metrics.set(metric::kCacheBlocksFree, static_cast<double>(unused));
  metrics.set(metric::kCacheFragmentation, blocks.fragmentation());
  std::array<bool, cache::kMaxBlockGroups> windows{};
  for (size_t bin = 0; bin < pool.reaches().size(); ++bin) {
    if (pool.reaches()[bin] >= 0) windows[pool.group_of(bin)] = true;
  }
  double window_blocks = 0;
  double window_waste = 0;
  for (size_t group = 0; group < windows.size(); ++group) {
    if (!windows[group]) continue;
    const auto allocated = static_cast<double>(blocks.allocated(group));
    window_blocks += allocated;
    window_waste += allocated * blocks.fragmentation(group);
  }
  metrics.set(metric::kCacheWindowBlocksUsed, window_blocks);
  metrics.set(metric::kCacheWindowFragmentation,
              window_blocks > 0 ? window_waste / window_blocks : 0);
}

/// Sets up one block pool for all sessions and, if requested, the prefix cache.
Status use_pool(const CacheChoice& choice, const model::Model& model, GeneratorOptions* options) {
  GEN_ASSIGN(auto pool,
             cache::CachePool::create(
                 options->kv_dtype, model.layer_shapes(), choice.paged_block_size, choice.paged_mb,
                 memories_of(model, *options),
                 {options->window_rewind.value_or(kDefaultWindowRewind), options->window_copies,
                  prefill_rows(options->prefill_chunk, model.traits())}));
  options->cache_factory = [pool](std::span<const cache::LayerShape>, int32_t capacity) {
    return cache::make_paged_cache(pool, capacity);
  };
  options->measure_caches = [pool](Metrics& metrics) { measure_pool(*pool, metrics); };
  if (choice.prefix_blocks == 0) return {};
  std::shared_ptr<cache::BlockPool> blocks(pool, &pool->blocks());
  GEN_ASSIGN(options->prefix_cache,
             cache::PrefixCache::create(std::move(blocks), choice.prefix_blocks,
                                        {pool->reaches().begin(), pool->reaches().end()}));
  options->measure_caches = [pool, prefixes = options->prefix_cache,
                             told = uint64_t{0}](Metrics& metrics) mutable {
    measure_pool(*pool, metrics);
    const uint64_t evicted = prefixes->evicted();
    if (evicted == told) return;
    metrics.add(metric::kPrefixEvictions, static_cast<double>(evicted - told));
    told = evicted;
  };
  return {};
}

}  // namespace

Result<std::shared_ptr<const Generator>> create_generator(const ModelInUse& in_use,
                                                          const CacheChoice& choice,
                                                          GeneratorOptions options) {
  const model::Model& model = *in_use.model;
  GEN_TRY(check_together(choice));
  const bool rows = choice.compressed_chunk == 0 && !choice.tiered;
  if (options.window_rewind.value_or(-1) >= 0 && !rows) {
    return error(Code::kInvalidArgument,
                 "window_rewind %d does not go with %s, which keeps no windows: only -1 does",
                 *options.window_rewind, choice.tiered ? "tiered_kv" : "compressed_kv");
  }
  options.kv_dtype = choice.format.name();
  options.snapshot_budget = choice.snapshot_mb < 0 ? -1 : int64_t{choice.snapshot_mb} << 20;
  const bool compresses = choice.compressed_chunk > 0 && !model.layer_shapes().empty();
  if (compresses) GEN_TRY(use_chunks(choice.compressed_chunk, model, &options));
  if (choice.tiered.has_value()) GEN_TRY(use_tiers(*choice.tiered, in_use, &options));
  if (choice.paged_mb > 0) GEN_TRY(use_pool(choice, model, &options));
  return Generator::create(in_use.model, in_use.tokenizer, std::move(options));
}

}  // namespace gen::generate
