// SPDX-License-Identifier: Apache-2.0
// kv_cache_prefix.h of the C API.
#include <generate/kv_cache_prefix.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/cache/pool_handle.h"
#include "cache/prefix/prefix_cache.h"

struct kv_cache_prefix : gen::Postponed {
  gen::api::Shared<gen::cache::PrefixCache> shared;
  gen::HomeProcess home;
};

namespace {

using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::cache::Block;
using gen::cache::PrefixCache;

}  // namespace

gen_status kv_cache_prefix_new(int32_t capacity, const kv_cache_pool* pool, kv_cache_prefix** out,
                               gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(pool, "pool"));
    GEN_TRY(not_null(out, "out"));
    auto handle = std::make_unique<kv_cache_prefix>();
    // Shares the whole state, so that the allocator lives as long as the blocks.
    GEN_ASSIGN(const auto used, pool->shared.enter("the pool"));
    std::shared_ptr<gen::cache::BlockPool> blocks(used.shared(), &used->blocks());
    GEN_ASSIGN(auto made, PrefixCache::create(std::move(blocks), capacity));
    handle->shared = gen::api::Shared<PrefixCache>(std::move(made), pool->shared.callbacks());
    *out = handle.release();
    return {};
  });
}

void kv_cache_prefix_free(kv_cache_prefix* prefix) {
  if (prefix != nullptr) gen::api::end_handle(prefix, prefix->shared.callbacks());
}

gen_status kv_cache_prefix_insert(const kv_cache_prefix* prefix, uint64_t domain,
                                  const int32_t* tokens, size_t n_tokens,
                                  kv_cache_block* const* blocks, size_t n_blocks,
                                  gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(prefix, "prefix"));
    if (n_tokens > 0) GEN_TRY(not_null(tokens, "tokens"));
    if (n_blocks > 0) GEN_TRY(not_null(blocks, "blocks"));
    std::vector<Block*> own(n_blocks);
    for (size_t i = 0; i < n_blocks; ++i) own[i] = reinterpret_cast<Block*>(blocks[i]);
    GEN_ASSIGN(const auto used, prefix->shared.enter("the prefix cache"));
    return used->insert(domain, std::span(tokens, n_tokens), own);
  });
}

gen_status kv_cache_prefix_match(const kv_cache_prefix* prefix, uint64_t domain,
                                 const int32_t* tokens, size_t n_tokens, kv_cache_block** blocks,
                                 size_t capacity, size_t* n_blocks, size_t* matched,
                                 gen_error* error) {
  if (n_blocks != nullptr) *n_blocks = 0;
  if (matched != nullptr) *matched = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(prefix, "prefix"));
    GEN_TRY(not_null(n_blocks, "n_blocks"));
    GEN_TRY(not_null(matched, "matched"));
    if (n_tokens > 0) GEN_TRY(not_null(tokens, "tokens"));
    GEN_ASSIGN(const auto used, prefix->shared.enter("the prefix cache"));
    gen::cache::PrefixHit hit = used->match(domain, std::span(tokens, n_tokens));
    const auto found = hit.blocks();
    *n_blocks = found.size();
    if (blocks != nullptr && found.size() > capacity) {
      return gen::error(gen::Code::kOutOfRange, "%zu blocks do not fit a buffer of %zu",
                        found.size(), capacity);
    }
    *matched = hit.tokens();
    if (blocks == nullptr) return {};
    std::transform(found.begin(), found.end(), blocks,
                   [](Block* block) { return reinterpret_cast<kv_cache_block*>(block); });
    hit.taken();
    return {};
  });
}

int32_t kv_cache_prefix_size(const kv_cache_prefix* prefix) {
  return gen::api::usable(prefix) ? prefix->shared.peek().size() : 0;
}
