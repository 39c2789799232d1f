// SPDX-License-Identifier: Apache-2.0
// kv_cache_radix.h of the C API.
#include <generate/kv_cache_radix.h>

#include <memory>
#include <span>

#include "api/boundary/boundary.h"
#include "api/boundary/entry.h"
#include "cache/prefix/radix_cache.h"

struct kv_cache_radix : gen::Postponed {
  gen::api::Shared<gen::cache::RadixCache> shared;
  gen::HomeProcess home;
};

namespace {

using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::cache::RadixCache;

/// The checks of every call with tokens; `body` gets them as a span.
template <typename F>
gen_status with_tokens(const kv_cache_radix* radix, const int32_t* tokens, size_t n_tokens,
                       gen_error* error, F&& body) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(radix, "radix"));
    if (n_tokens > 0) GEN_TRY(not_null(tokens, "tokens"));
    GEN_ASSIGN(const auto used, radix->shared.enter("the index"));
    return body(*used, std::span(tokens, n_tokens));
  });
}

using LookUp = Status (RadixCache::*)(std::span<const int32_t>, size_t*, RadixCache::Ids*);

gen_status look_up(LookUp call, const kv_cache_radix* radix, const int32_t* tokens, size_t n_tokens,
                   size_t* matched, RadixCache::Ids ids, size_t* n, gen_error* error) {
  if (matched != nullptr) *matched = 0;
  const gen_status status = with_tokens(radix, tokens, n_tokens, error, [&](auto& impl, auto all) {
    GEN_TRY(not_null(matched, "matched"));
    return (impl.*call)(all, matched, &ids);
  });
  if (n != nullptr) *n = ids.count;
  return status;
}

}  // namespace

gen_status kv_cache_radix_new(int32_t block_size, int32_t max_blocks, kv_cache_radix** out,
                              gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(auto impl, RadixCache::create(block_size, max_blocks));
    const gen::SharedCallbacks callbacks = gen::api::joined({impl->callbacks()});
    auto handle = std::make_unique<kv_cache_radix>();
    handle->shared = gen::api::Shared<RadixCache>(std::move(impl), callbacks);
    *out = handle.release();
    return {};
  });
}

void kv_cache_radix_free(kv_cache_radix* radix) {
  if (radix != nullptr) gen::api::end_handle(radix, radix->shared.callbacks());
}

gen_status kv_cache_radix_insert(const kv_cache_radix* radix, const int32_t* tokens,
                                 size_t n_tokens, int32_t* ids, size_t capacity, size_t* n,
                                 gen_error* error) {
  RadixCache::Ids out{ids, capacity};
  const gen_status status = with_tokens(
      radix, tokens, n_tokens, error, [&](auto& impl, auto all) { return impl.insert(all, &out); });
  if (n != nullptr) *n = out.count;
  return status;
}

gen_status kv_cache_radix_match(const kv_cache_radix* radix, const int32_t* tokens, size_t n_tokens,
                                size_t* matched, int32_t* ids, size_t capacity, size_t* n,
                                gen_error* error) {
  return look_up(&RadixCache::match, radix, tokens, n_tokens, matched, {ids, capacity}, n, error);
}

gen_status kv_cache_radix_pin(const kv_cache_radix* radix, const int32_t* tokens, size_t n_tokens,
                              size_t* matched, int32_t* ids, size_t capacity, size_t* n,
                              gen_error* error) {
  return look_up(&RadixCache::pin, radix, tokens, n_tokens, matched, {ids, capacity}, n, error);
}

gen_status kv_cache_radix_unpin(const kv_cache_radix* radix, const int32_t* tokens, size_t n_tokens,
                                gen_error* error) {
  return with_tokens(radix, tokens, n_tokens, error,
                     [](auto& impl, auto all) { return impl.unpin(all); });
}

gen_status kv_cache_radix_evict(const kv_cache_radix* radix, int32_t* id, gen_error* error) {
  if (id != nullptr) *id = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(radix, "radix"));
    int32_t gone = -1;
    GEN_ASSIGN(const auto used, radix->shared.enter("the index"));
    GEN_TRY(used->evict(&gone));
    if (id != nullptr) *id = gone;
    return {};
  });
}

gen_status kv_cache_radix_remove(const kv_cache_radix* radix, const int32_t* tokens,
                                 size_t n_tokens, size_t* removed, gen_error* error) {
  size_t count = 0;
  const gen_status status = with_tokens(radix, tokens, n_tokens, error, [&](auto& impl, auto all) {
    return impl.remove(all, &count);
  });
  if (removed != nullptr) *removed = count;
  return status;
}

int32_t kv_cache_radix_size(const kv_cache_radix* radix) {
  return gen::api::usable(radix) ? radix->shared.peek().size() : 0;
}

gen_status kv_cache_radix_stats(const kv_cache_radix* radix, uint64_t* hits, uint64_t* misses,
                                uint64_t* evictions, gen_error* error) {
  RadixCache::Stats stats;
  const gen_status status = guard(error, [&]() -> Status {
    GEN_TRY(not_null(radix, "radix"));
    GEN_ASSIGN(const auto used, radix->shared.enter("the index"));
    return used->stats(&stats);
  });
  if (hits != nullptr) *hits = stats.hits;
  if (misses != nullptr) *misses = stats.misses;
  if (evictions != nullptr) *evictions = stats.evictions;
  return status;
}

gen_status kv_cache_radix_set_evict_callback(const kv_cache_radix* radix,
                                             kv_cache_radix_evict_callback callback, void* user,
                                             gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(radix, "radix"));
    GEN_ASSIGN(const auto used, radix->shared.enter("the index"));
    return used->set_on_free(callback, user);
  });
}
