// SPDX-License-Identifier: Apache-2.0
// Where the sessions of a generator keep keys and values: each in memory of its own, in blocks of
// one pool, in chunks that become one entry, or in tiers. What goes together is decided here, and
// what cannot be had is said before there is a session.
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

/// Of sessions that keep a part in memory and the rest in a file.
struct TierChoice {
  int32_t num_layers = 0;                                      // 0: the model's; nothing else fits
  int32_t max_seq_len = 0;                                     // 0: the model's
  std::string cold_dir;                                        // empty: a temporary folder
  int32_t hot_mb = 1024;                                       // MiB of memory for each session
  int32_t hot_blocks = 0;                                      // 0: as many as hot_mb holds
  int32_t block_size = cache::TieredCacheOptions::kBlockSize;  // positions
  int32_t prefetch_layers = -1;  // below 0: 1 if a CPU is free, else 0
};

struct CacheChoice {
  cache::CacheFormat format;
  int32_t paged_mb = 0;                             // 0: each session has memory of its own
  int32_t paged_block_size = 16;                    // positions
  int32_t prefix_blocks = 0;                        // 0: texts that begin alike share nothing
  int32_t compressed_chunk = 0;                     // positions that become one; 0: none do
  std::optional<TierChoice> tiered = std::nullopt;  // nothing: everything stays in memory
};

/// What a generator is made over.
struct ModelInUse {
  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;  // may be null
  bool spare_cpu = false;  // the model's threads leave a CPU to others
};

/// Generator::create with these caches; `options` say everything else. kInvalidArgument for what
/// does not go together and what the model's layers do not fit, and what making one such cache, or
/// the pool, says.
Result<std::shared_ptr<const Generator>> create_generator(const ModelInUse& in_use,
                                                          const CacheChoice& choice,
                                                          GeneratorOptions options);

}  // namespace gen::generate
