// SPDX-License-Identifier: Apache-2.0
// See cache_trial.h.
#include "cache/sequence/cache_trial.h"

#include <algorithm>
#include <utility>

namespace gen::cache {

CacheTrial::CacheTrial(KvCache& cache) noexcept : cache_(&cache), before_(cache.length()) {}

CacheTrial::CacheTrial(std::unique_ptr<KvCache> made) noexcept
    : made_(std::move(made)), cache_(made_.get()), before_(0) {}

CacheTrial::CacheTrial(CacheTrial&& other) noexcept
    : made_(std::move(other.made_)),
      cache_(std::exchange(other.cache_, nullptr)),
      before_(other.before_) {}

CacheTrial::~CacheTrial() {
  if (cache_ == nullptr || made_ != nullptr) return;
  if (cache_->length() > before_) static_cast<void>(cache_->truncate(before_));
}

Status CacheTrial::expect(size_t rows, size_t each) {
  const auto limit = static_cast<size_t>(cache_->plan_limit());
  // A pool gives blocks back between plans; other caches lose nothing within their limit.
  const bool several = rows > (cache_->traits().pooled ? std::min(limit, each) : limit);
  if (!several || cache_->traits().cuts_exactly || made_ != nullptr) return {};
  GEN_ASSIGN(made_, cache_->fork());
  cache_ = made_.get();
  return {};
}

std::unique_ptr<KvCache> CacheTrial::keep() noexcept {
  cache_ = nullptr;
  return std::move(made_);
}

}  // namespace gen::cache
