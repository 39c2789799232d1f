// SPDX-License-Identifier: Apache-2.0
// kv_cache_tier_config_… of kv_cache_tiered.h.
#include "api/cache/tier_config.h"

#include <generate/kv_cache_tiered.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "api/boundary/boundary.h"
#include "api/boundary/c_allocator.h"
#include "api/boundary/c_gpu_allocator.h"
#include "api/boundary/option_table.h"
#include "cache/limits.h"

namespace {

using Config = kv_cache_tier_config;
using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::kAnyLeast;
using gen::api::kAnyMost;
using gen::api::not_null;
using gen::api::OptionRow;
using gen::api::TextOption;
using gen::api::WholeOption;
using gen::cache::TierOptions;

constexpr int32_t kMaxBlock = 65536;

constexpr OptionRow<Config> kLayers = {
    "num_layers",
    WholeOption<Config>{[](Config& c) -> int32_t& { return c.store.num_layers; }, 0,
                        gen::cache::kMaxLayers},
    "layers; 0: the model's"};
constexpr OptionRow<Config> kMaxSeqLen = {
    "max_seq_len",
    WholeOption<Config>{[](Config& c) -> int32_t& { return c.store.max_seq_len; }, 0, kAnyMost},
    "longest context; 0: the model's"};
constexpr OptionRow<Config> kChunk = {
    "chunk_size",
    WholeOption<Config>{[](Config& c) -> int32_t& { return c.store.chunk_size; }, kAnyLeast,
                        kAnyMost, TierOptions::kDefaultChunk},
    "positions per mean; 0 or less: the default"};
constexpr OptionRow<Config> kDemote = {
    "demote_threshold",
    WholeOption<Config>{[](Config& c) -> int32_t& { return c.store.demote_threshold; }, kAnyLeast,
                        kAnyMost, TierOptions::kDefaultDemote},
    "uses below which a layer of a store moves down a tier; 0 or less: the default"};
constexpr OptionRow<Config> kPromote = {
    "promote_threshold",
    WholeOption<Config>{[](Config& c) -> int32_t& { return c.store.promote_threshold; }, kAnyLeast,
                        kAnyMost, TierOptions::kDefaultPromote},
    "uses from which a layer of a store moves up a tier; 0 or less: the default"};
constexpr OptionRow<Config> kHotMemory = {
    "hot_memory",
    WholeOption<Config>{[](Config& c) -> int32_t& { return c.sessions.hot_mb; }, 1, kAnyMost},
    "MiB of memory for each session"};
constexpr OptionRow<Config> kHotBlocks = {
    "hot_blocks",
    WholeOption<Config>{[](Config& c) -> int32_t& { return c.sessions.hot_blocks; }, 0, kAnyMost},
    "blocks in memory for each layer; 0: as many as hot_memory holds"};
constexpr OptionRow<Config> kBlockSize = {
    "block_size",
    WholeOption<Config>{[](Config& c) -> int32_t& { return c.sessions.block_size; }, 1, kMaxBlock},
    "positions per block"};
constexpr OptionRow<Config> kPrefetch = {
    "prefetch_layers",
    WholeOption<Config>{[](Config& c) -> int32_t& { return c.sessions.prefetch_layers; }, -1,
                        kAnyMost},
    "layers read ahead of the one in use; -1: 1 if a CPU is free, else 0"};

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

std::string warm_names() {
  std::string names;
  for (const auto& form : gen::cache::warm_forms()) {
    names.append(names.empty() ? "" : ", ").append(form.name);
  }
  return names;
}

const OptionRow<Config> kRows[] = {
    kLayers,
    kMaxSeqLen,
    kChunk,
    kDemote,
    kPromote,
    {"cold_dir",
     TextOption<Config>{[] { return std::string("a folder"); }, set_cold_dir,
                        [](const Config& c) { return c.store.cold_dir; }},
     "folder of the files; empty: a temporary folder"},
    {"store_id",
     TextOption<Config>{[] { return std::string("letters, digits, - and _"); }, set_store_id,
                        [](const Config& c) { return c.store.store_id; }},
     "prefix of the names of the store's files; empty: random"},
    {"warm_form",
     TextOption<Config>{warm_names, set_warm_form, [](const Config& c) { return c.store.warm; }},
     "how layers are stored that are not hot"},
    kHotMemory,
    kHotBlocks,
    kBlockSize,
    kPrefetch,
};

// Chunk and thresholds are missing here on purpose: a configuration for both uses may set them.
// Sessions ignore them safely, because they lose nothing and move the oldest entries.
constexpr std::string_view kOfStores[] = {"store_id", "warm_form"};
constexpr std::string_view kOfSessions[] = {"hot_memory", "hot_blocks", "block_size",
                                            "prefetch_layers"};

Status refuse(const Config& config, std::span<const std::string_view> fields, const char* of,
              const char* use) {
  const Config initial{};
  for (const OptionRow<Config>& row : kRows) {
    if (std::find(fields.begin(), fields.end(), row.key) == fields.end()) continue;
    if (row.text(config) == row.text(initial)) continue;
    return gen::error(Code::kInvalidArgument, "%s %.40s is a field of %s and has no effect on %s",
                      row.key, row.text(config).c_str(), of, use);
  }
  return {};
}

gen_status set_number(Config* config, const OptionRow<Config>& number, int32_t value,
                      gen_error* error) {
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
  if (config.store.device != nullptr) {
    return {Code::kInvalidArgument,
            "the GPU allocator is of kv_cache_tiered_new; tiers of sessions lie where their model "
            "computes"};
  }
  return refuse(config, kOfStores, "kv_cache_tiered_new", "gen_options_set_tiered_kv");
}

Status set_hot_memory(kv_cache_tier_config& config, int64_t mebibytes) {
  return kHotMemory.set(config, mebibytes);
}

generate::TierChoice tier_choice(const kv_cache_tier_config& config) {
  generate::TierChoice choice = config.sessions;
  choice.num_layers = config.store.num_layers;
  choice.max_seq_len = config.store.max_seq_len;
  choice.cold_dir = config.store.cold_dir;
  return choice;
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

gen_status kv_cache_tier_config_set_gpu_allocator(kv_cache_tier_config* config,
                                                  const gen_gpu_allocator* allocator,
                                                  gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(config, "config"));
    std::shared_ptr<gen::engine::GpuAllocator> wrapped;
    if (allocator != nullptr) {
      GEN_ASSIGN(wrapped, gen::api::wrap_gpu_allocator(allocator));
    }
    config->store.device = std::move(wrapped);
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
