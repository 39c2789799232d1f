// SPDX-License-Identifier: Apache-2.0
// The handle behind kv_cache: who owns it, who may use it when, and what it goes over. What it can
// do is its body's, see kv_cache_body.h.
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
  gen::SharedCallbacks callbacks;  // of the functions of the host that calls on it may reach
  std::shared_ptr<gen::api::CacheBody> body;  // set before the handle is given out
  gen::InUseFlag* in_use = nullptr;           // of what the body holds
  /// Belongs to what lends it out: for reading only, and not for kv_cache_free.
  bool borrowed = false;
  kv_cache* whole = nullptr;  // of an underlying one: what it shares its in-use flag with
  /// What a tracing cache or a wrapper (in the order of layer types) goes over, lent out.
  std::vector<std::unique_ptr<kv_cache>> underlying;
  gen::HomeProcess home;
  gen::InUseFlag in_call;  // this handle is, which kv_cache_free asks
};

namespace gen::api {

/// A cache during a call on it.
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

/// What every call on a cache checks first; `body` runs while the cache is held.
template <typename Cache, typename F>
gen_status with_cache(Cache* cache, gen_error* error, F&& body) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(cache, "cache"));
    const HeldCache held(cache);
    GEN_TRY(held.entered("the cache"));
    return body(*cache);
  });
}

/// A handle that owns its cache alone.
std::unique_ptr<kv_cache> handle_of(std::shared_ptr<CacheBody> body);
/// A handle that `whole` lends out, for a part of what it goes over; the body may be others', too.
std::unique_ptr<kv_cache> part_of(const kv_cache& whole, std::shared_ptr<CacheBody> body);

/// kState for a cache that is lent out.
Status own(const kv_cache& cache);
/// kState for a cache of many sequences, which `call` is not for.
Result<OneSequence*> one_sequence(const kv_cache& cache, const char* call);
/// `call` is for `family`, and this cache is another.
Status other_family(Code code, const char* call, const char* family, const kv_cache& cache);

/// kInvalidArgument for a span that cannot be filled.
Status check_span(const kv_cache_span* span);
/// As C sees it, but without struct_size; all zero for a miss.
kv_cache_span span_of(const cache::TensorSpan& from);

}  // namespace gen::api
