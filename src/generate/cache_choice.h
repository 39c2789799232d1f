// SPDX-License-Identifier: Apache-2.0
// Where the sessions of a generator keep keys and values: in memory of each session, in blocks of a
// shared pool, in compressed chunks, or in tiers. Combinations are checked here, before the first
// session is created.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "cache/sequence/cache_format.h"
#include "cache/sequence/tiered_cache.h"
#include "generate/loop/generator.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

namespace gen::generate {

/// Options of tiered caches: a part in memory, the rest in a file.
struct TierChoice {
  int32_t num_layers = 0;   // 0: the model's; any other number must equal it
  int32_t max_seq_len = 0;  // 0: the model's
  std::string cold_dir;     // empty: a temporary folder
  int32_t hot_mb = 1024;    // MiB of memory per session
  int32_t hot_blocks = 0;   // 0: as many as hot_mb holds
  int32_t block_size = cache::TieredCacheOptions::kBlockSize;  // positions per block
  int32_t prefetch_layers = -1;  // negative: 1 if a CPU is free, else 0
};

struct CacheChoice {
  cache::CacheFormat format;
  int32_t paged_mb = 0;           // MiB of the block pool; 0: each session has its own memory
  int32_t paged_block_size = 16;  // positions per block
  int32_t prefix_blocks = 0;      // blocks of the prefix cache; 0: none
  int32_t compressed_chunk = 0;   // positions compressed into one entry; 0: none
  int32_t snapshot_mb = -1;       // MiB; GeneratorOptions::snapshot_budget
  std::optional<TierChoice> tiered = std::nullopt;  // nullopt: everything stays in memory
};

/// The model that a generator is made for.
struct ModelInUse {
  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  // may be null
  bool spare_cpu = false;  // the model's threads leave at least one CPU free
};

/// Generator::create with these caches. `options` hold everything else. Errors: kInvalidArgument
/// for options that exclude each other or do not fit the model's layers, and errors of making one
/// such cache or the pool. For a model without keys and values there is nothing to compress or to
/// put into tiers, which is no error; the blocks of its pool count tokens for the prefix cache.
Result<std::shared_ptr<const Generator>> create_generator(const ModelInUse& in_use,
                                                          const CacheChoice& choice,
                                                          GeneratorOptions options);

}  // namespace gen::generate
