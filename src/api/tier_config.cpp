// SPDX-License-Identifier: Apache-2.0
// kv_cache_tier_config_… of kv_cache_tiered.h.
#include "api/tier_config.h"

#include <generate/kv_cache_tiered.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "api/boundary.h"
#include "api/c_allocator.h"
#include "api/option_table.h"
#include "cache/limits.h"

namespace {

using Config = kv_cache_tier_config;
using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::api::OptionRow;

/// A whole number that must lie in a range.
struct Number {
  const char* key;
  int64_t least;
  int64_t most;
  void (*store)(Config& config, int32_t value);

  Status set(Config& config, int64_t value) const {
    if (value < least || value > most) {
      return gen::error(Code::kInvalidArgument, "%s %lld is outside [%lld, %lld]", key,
                        static_cast<long long>(value), static_cast<long long>(least),
                        static_cast<long long>(most));
    }
    store(config, static_cast<int32_t>(value));
    return {};
  }
};

constexpr Number kLayers = {"num_layers", 0, gen::cache::kMostLayers,
                            [](Config& c, int32_t x) { c.store.num_layers = x; }};
constexpr Number kMaxSeqLen = {"max_seq_len", 0, INT32_MAX,
                               [](Config& c, int32_t x) { c.store.max_seq_len = x; }};
constexpr Number kChunk = {"chunk_size", INT32_MIN, INT32_MAX,
                           [](Config& c, int32_t x) { c.store.chunk_size = x; }};
constexpr Number kDemote = {"demote_threshold", INT32_MIN, INT32_MAX,
                            [](Config& c, int32_t x) { c.store.demote_threshold = x; }};
constexpr Number kPromote = {"promote_threshold", INT32_MIN, INT32_MAX,
                             [](Config& c, int32_t x) { c.store.promote_threshold = x; }};
constexpr Number kHotMemory = {"hot_memory", 1, INT32_MAX,
                               [](Config& c, int32_t x) { c.hot_mb = x; }};
constexpr Number kHotBlocks = {"hot_blocks", 0, INT32_MAX,
                               [](Config& c, int32_t x) { c.hot_blocks = x; }};
constexpr Number kBlockSize = {"block_size", 1, 65536,
                               [](Config& c, int32_t x) { c.block_size = x; }};
constexpr Number kPrefetch = {"prefetch_layers", -1, INT32_MAX,
                              [](Config& c, int32_t x) { c.prefetch_layers = x; }};

template <const Number& kNumber>
Status from_text(Config& config, const char* text) {
  GEN_ASSIGN(const int64_t value, gen::api::parse_int(text));
  return kNumber.set(config, value);
}

Status set_cold_dir(Config& config, const char* path) {
  config.store.cold_dir = path;
  return {};
}
Status set_store_id(Config& config, const char* id) {
  config.store.store_id = id;
  return {};
}
Status set_warm_form(Config& config, const char* form) {
  GEN_TRY(gen::cache::find_warm_form(form).status());
  config.store.warm = form;
  return {};
}

/// The value or what stands for it.
std::string shown(int32_t value, int32_t otherwise) {
  return std::to_string(value > 0 ? value : otherwise);
}

using gen::cache::TierOptions;
const OptionRow<Config> kRows[] = {
    {"num_layers", "int", "0 to 65536; 0: the model's", "0", from_text<kLayers>,
     [](const Config& c) { return std::to_string(c.store.num_layers); }},
    {"max_seq_len", "int", "0 and up; 0: the model's", "0", from_text<kMaxSeqLen>,
     [](const Config& c) { return std::to_string(c.store.max_seq_len); }},
    {"chunk_size", "int", "positions of a mean", "64", from_text<kChunk>,
     [](const Config& c) { return shown(c.store.chunk_size, TierOptions::kDefaultChunk); }},
    {"demote_threshold", "int", "uses", "2", from_text<kDemote>,
     [](const Config& c) { return shown(c.store.demote_threshold, TierOptions::kDefaultDemote); }},
    {"promote_threshold", "int", "uses", "5", from_text<kPromote>,
     [](const Config& c) {
       return shown(c.store.promote_threshold, TierOptions::kDefaultPromote);
     }},
    {"cold_dir", "string", "a folder; empty: a temporary one", "", set_cold_dir,
     [](const Config& c) { return c.store.cold_dir; }},
    {"store_id", "string", "letters, digits, - and _; empty: random", "", set_store_id,
     [](const Config& c) { return c.store.store_id; }},
    {"warm_form", "string", "fp32, fp16, fp8, q4, q3 or mean", "fp32", set_warm_form,
     [](const Config& c) { return c.store.warm; }},
    {"hot_memory", "int", "MiB, 1 and up", "1024", from_text<kHotMemory>,
     [](const Config& c) { return std::to_string(c.hot_mb); }},
    {"hot_blocks", "int", "0 and up; 0: by hot_memory", "0", from_text<kHotBlocks>,
     [](const Config& c) { return std::to_string(c.hot_blocks); }},
    {"block_size", "int", "1 to 65536 positions", "256", from_text<kBlockSize>,
     [](const Config& c) { return std::to_string(c.block_size); }},
    {"prefetch_layers", "int", "-1 and up; -1: 1 if a CPU is free, else 0", "-1",
     from_text<kPrefetch>, [](const Config& c) { return std::to_string(c.prefetch_layers); }},
};

constexpr std::string_view kOfStores[] = {"chunk_size", "demote_threshold", "promote_threshold",
                                          "store_id", "warm_form"};
constexpr std::string_view kOfSessions[] = {"hot_memory", "hot_blocks", "block_size",
                                            "prefetch_layers"};

Status refuse(const Config& config, std::span<const std::string_view> fields, const char* of,
              const char* use) {
  for (const OptionRow<Config>& row : kRows) {
    if (std::find(fields.begin(), fields.end(), row.key) == fields.end()) continue;
    if (row.get(config) == row.initial) continue;
    return gen::error(Code::kInvalidArgument, "%s %.40s is a field of %s and says nothing to %s",
                      row.key, row.get(config).c_str(), of, use);
  }
  return {};
}

gen_status set_number(Config* config, const Number& number, int32_t value, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    return number.set(*config, value);
  });
}

}  // namespace

namespace gen::api {

Status check_for_stores(const kv_cache_tier_config& config) {
  return refuse(config, kOfSessions, "gen_options_set_tiered_kv", "kv_cache_tiered_new");
}

Status check_for_sessions(const kv_cache_tier_config& config) {
  if (config.allocator != nullptr) {
    return {Code::kInvalidArgument,
            "the allocator is of kv_cache_tiered_new; sessions take their model's"};
  }
  return refuse(config, kOfStores, "kv_cache_tiered_new", "gen_options_set_tiered_kv");
}

Status set_hot_memory(kv_cache_tier_config& config, int64_t mebibytes) {
  return kHotMemory.set(config, mebibytes);
}

Result<cache::TieredCacheOptions> session_tiers(const kv_cache_tier_config& config,
                                                const char* format, size_t layers, bool spare_cpu) {
  if (config.store.num_layers != 0 && static_cast<size_t>(config.store.num_layers) != layers) {
    return error(Code::kInvalidArgument, "tiered_kv for %d layers, the model has %zu",
                 config.store.num_layers, layers);
  }
  cache::TieredCacheOptions options;
  options.format = format;
  options.cold_dir = config.store.cold_dir;
  options.hot_bytes = static_cast<size_t>(config.hot_mb) << 20;
  options.hot_blocks = config.hot_blocks;
  options.block_size = config.block_size;
  options.prefetch_layers = config.prefetch_layers;
  if (options.prefetch_layers < 0) options.prefetch_layers = spare_cpu ? 1 : 0;
  return options;
}

}  // namespace gen::api

gen_status kv_cache_tier_config_new(kv_cache_tier_config** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new kv_cache_tier_config;
    return {};
  });
}

gen_status kv_cache_tier_config_set_num_layers(kv_cache_tier_config* config, int32_t layers,
                                               gen_error* error) {
  return set_number(config, kLayers, layers, error);
}

gen_status kv_cache_tier_config_set_max_seq_len(kv_cache_tier_config* config, int32_t max_seq_len,
                                                gen_error* error) {
  return set_number(config, kMaxSeqLen, max_seq_len, error);
}

gen_status kv_cache_tier_config_set_chunk_size(kv_cache_tier_config* config, int32_t chunk_size,
                                               gen_error* error) {
  return set_number(config, kChunk, chunk_size, error);
}

gen_status kv_cache_tier_config_set_demote_threshold(kv_cache_tier_config* config, int32_t uses,
                                                     gen_error* error) {
  return set_number(config, kDemote, uses, error);
}

gen_status kv_cache_tier_config_set_promote_threshold(kv_cache_tier_config* config, int32_t uses,
                                                      gen_error* error) {
  return set_number(config, kPromote, uses, error);
}

gen_status kv_cache_tier_config_set_hot_memory(kv_cache_tier_config* config, int32_t mebibytes,
                                               gen_error* error) {
  return set_number(config, kHotMemory, mebibytes, error);
}

gen_status kv_cache_tier_config_set_hot_blocks(kv_cache_tier_config* config, int32_t blocks,
                                               gen_error* error) {
  return set_number(config, kHotBlocks, blocks, error);
}

gen_status kv_cache_tier_config_set_block_size(kv_cache_tier_config* config, int32_t positions,
                                               gen_error* error) {
  return set_number(config, kBlockSize, positions, error);
}

gen_status kv_cache_tier_config_set_prefetch_layers(kv_cache_tier_config* config, int32_t layers,
                                                    gen_error* error) {
  return set_number(config, kPrefetch, layers, error);
}

gen_status kv_cache_tier_config_set_cold_dir(kv_cache_tier_config* config, const char* path,
                                             gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    return set_cold_dir(*config, path != nullptr ? path : "");
  });
}

gen_status kv_cache_tier_config_set_store_id(kv_cache_tier_config* config, const char* id,
                                             gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    return set_store_id(*config, id != nullptr ? id : "");
  });
}

gen_status kv_cache_tier_config_set_warm_form(kv_cache_tier_config* config, const char* form,
                                              gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    GEN_TRY(not_null(form, "form"));
    return set_warm_form(*config, form);
  });
}

gen_status kv_cache_tier_config_set_allocator(kv_cache_tier_config* config,
                                              const gen_allocator* allocator, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    std::shared_ptr<gen::Allocator> wrapped;
    if (allocator != nullptr) {
      GEN_ASSIGN(wrapped, gen::api::wrap_allocator(*allocator));
    }
    config->allocator = std::move(wrapped);
    return {};
  });
}

gen_status kv_cache_tier_config_set(kv_cache_tier_config* config, const char* key,
                                    const char* value, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    GEN_TRY(not_null(key, "key"));
    GEN_TRY(not_null(value, "value"));
    return gen::api::set_by_name<Config>(kRows, *config, key, value);
  });
}

gen_status kv_cache_tier_config_describe(const kv_cache_tier_config* config, char* buf,
                                         size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    return gen::api::text_out(gen::api::describe_options<Config>(kRows, *config), buf, capacity, n);
  });
}

void kv_cache_tier_config_free(kv_cache_tier_config* config) { delete config; }
