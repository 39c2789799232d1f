// SPDX-License-Identifier: Apache-2.0
// A cache during a pass that may fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "cache/sequence/kv_cache.h"

namespace gen::cache {

/// Unless keep() is called, the destructor cuts off what was committed meanwhile, so a pass that
/// fails leaves no trace. Needs a cache that can be cut.
class CacheTrial {
 public:
  /// Of a cache that must stay.
  explicit CacheTrial(KvCache& cache) noexcept;
  /// Of one that was made for the pass.
  explicit CacheTrial(std::unique_ptr<KvCache> made) noexcept;
  CacheTrial(CacheTrial&& other) noexcept;
  CacheTrial& operator=(CacheTrial&&) = delete;
  ~CacheTrial();

  [[nodiscard]] KvCache* get() const noexcept { return cache_; }
  /// Before the first of `rows` rows comes, of which at most `each` are in one plan: those that
  /// take several plans must be cut off exactly, and where the cache could not be, they come to a
  /// copy, which get() is from here on.
  Status expect(size_t rows, size_t each);
  /// The pass has succeeded. What takes the place of the cache: the one made, or a copy; null where
  /// it was changed in place.
  [[nodiscard]] std::unique_ptr<KvCache> keep() noexcept;

 private:
  std::unique_ptr<KvCache> made_;  // or a copy
  KvCache* cache_;                 // null once kept or moved from
  int32_t before_;                 // positions at the start
};

}  // namespace gen::cache
