// SPDX-License-Identifier: Apache-2.0
// The handle behind kv_cache: ownership, concurrent use, and its underlying caches. The body has
// the functions, see kv_cache_body.h.
#pragma once

#include <memory>
#include <vector>

#include "api/boundary/boundary.h"
#include "api/boundary/entry.h"
#include "api/cache/kv_cache_body.h"
#include "base/home_process.h"
#include "base/in_use.h"
#include "base/status.h"
#include <generate/kv_cache.h>

struct kv_cache : gen::Postponed {
  gen::SharedCallbacks callbacks;             // host functions that calls on it may reach
  std::shared_ptr<gen::api::CacheBody> body;  // set before the handle is returned
  gen::InUseFlag* in_use = nullptr;           // the flag of the body
  /// Lent out by its owner: read-only, and not to be passed to kv_cache_free.
  bool borrowed = false;
  kv_cache* whole = nullptr;  // the cache that lends this one and shares its in-use flag
  /// The caches under a tracing cache or a wrapper (in the order of layer types), lent out.
  std::vector<std::unique_ptr<kv_cache>> underlying;
  gen::HomeProcess home;
  gen::InUseFlag in_call;  // a call uses this handle; checked by kv_cache_free
};

namespace gen::api {

/// Holds a cache during a call.
class HeldCache {
 public:
  explicit HeldCache(const kv_cache* cache)
      : whole_(cache->whole != nullptr ? cache->whole : const_cast<kv_cache*>(cache)),
        entry_(whole_->callbacks),
        inside_(entry_.entered("the cache")),
        call_(whole_, &whole_->in_call, end),
        use_(cache->in_use) {}
  [[nodiscard]] Status entered(const char* what) const noexcept {
    GEN_TRY(call_.entered(what));
    GEN_TRY(use_.entered(what));
    return inside_;
  }

 private:
  static void end(kv_cache* cache) { end_handle(cache, cache->callbacks); }

  kv_cache* whole_;
  Entry entry_;
  Status inside_;
  HeldHandle<kv_cache> call_;
  InUseGuard use_;
};

/// The checks of every call on a cache; `body` runs while the cache is held.
template <typename Cache, typename F>
gen_status with_cache(Cache* cache, gen_error* error, F&& body) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(cache, "cache"));
    const HeldCache held(cache);
    GEN_TRY(held.entered("the cache"));
    return body(*cache);
  });
}

/// Makes a handle that owns its cache.
std::unique_ptr<kv_cache> handle_of(std::shared_ptr<CacheBody> body);
/// Makes a handle for an underlying cache of `whole`, lent out; the body may have other owners.
std::unique_ptr<kv_cache> part_of(const kv_cache& whole, std::shared_ptr<CacheBody> body);

/// kState if the cache is lent out.
Status own(const kv_cache& cache);
/// kState if the cache holds many sequences, which `call` does not support.
Result<OneSequence*> one_sequence(const kv_cache& cache, const char* call);
/// The error for a cache that is not of the `family` that `call` supports.
Status other_family(Code code, const char* call, const char* family, const kv_cache& cache);

/// kInvalidArgument if the span cannot be filled.
Status check_span(const kv_cache_span* span);
/// Converts to the C struct, without struct_size; all zero for a miss.
kv_cache_span span_of(const cache::TensorSpan& from);

}  // namespace gen::api
