// SPDX-License-Identifier: Apache-2.0
// See split_cache.h. All caches are planned, committed and cut together, so they always hold the
// same positions.
#include "cache/sequence/split_cache.h"

#include <algorithm>
#include <utility>

namespace gen::cache {
namespace {

/// A cache and the index of a layer or part within it.
struct CacheIndex {
  size_t cache;
  int32_t index;
};

class SplitCache final : public KvCache, public Shifts {
 public:
  /// `layers` maps each layer to its cache.
  SplitCache(std::vector<std::unique_ptr<KvCache>> caches, std::vector<CacheIndex> layers)
      : caches_(std::move(caches)), layer_indices_(std::move(layers)) {
    std::vector<int32_t> first_part;
    for (size_t c = 0; c < caches_.size(); ++c) {
      first_part.push_back(static_cast<int32_t>(part_indices_.size()));
      for (int32_t part = 0; part < caches_[c]->parts(); ++part) part_indices_.push_back({c, part});
    }
    traits_ = caches_[0]->traits();
    traits_.bytes_per_entry = 0;
    for (const auto& cache : caches_) {
      traits_.bytes_per_entry += cache->traits().bytes_per_entry;
      if (!cache->traits().cuts_exactly) {
        traits_.cuts_exactly = false;
        traits_.layout = cache->traits().layout;
      }
    }
    for (const CacheIndex& at : layer_indices_) {
      const auto index = static_cast<size_t>(at.index);
      shapes_.push_back(caches_[at.cache]->layers()[index]);
      kv_layers_.push_back(caches_[at.cache]->kv_layers()[index]);
      kv_layers_.back().part += first_part[at.cache];
    }
  }

  [[nodiscard]] const CacheTraits& traits() const noexcept override { return traits_; }
  [[nodiscard]] std::span<const LayerShape> layers() const noexcept override { return shapes_; }
  [[nodiscard]] int32_t length() const noexcept override { return caches_[0]->length(); }
  [[nodiscard]] int32_t entries() const noexcept override { return caches_[0]->entries(); }
  [[nodiscard]] EntryPositions positions_of(int32_t entry) const noexcept override {
    return caches_[0]->positions_of(entry);
  }
  [[nodiscard]] int32_t capacity() const noexcept override {
    return least([](const KvCache& cache) { return cache.capacity(); });
  }
  [[nodiscard]] int32_t plan_limit() const noexcept override {
    return least([](const KvCache& cache) { return cache.plan_limit(); });
  }
  [[nodiscard]] int32_t room() const noexcept override {
    return least([](const KvCache& cache) { return cache.room(); });
  }
  [[nodiscard]] int32_t keeps_behind(int32_t layer) const noexcept override {
    const CacheIndex at = layer_indices_[static_cast<size_t>(layer)];
    return caches_[at.cache]->keeps_behind(at.index);
  }
  [[nodiscard]] int32_t first_held(int32_t layer) const noexcept override {
    const CacheIndex at = layer_indices_[static_cast<size_t>(layer)];
    return caches_[at.cache]->first_held(at.index);
  }
  [[nodiscard]] int32_t saves_from(int32_t layer) const noexcept override {
    const CacheIndex at = layer_indices_[static_cast<size_t>(layer)];
    return caches_[at.cache]->saves_from(at.index);
  }
  [[nodiscard]] bool wants_points() const noexcept override {
    return std::any_of(caches_.begin(), caches_.end(),
                       [](const auto& cache) { return cache->wants_points(); });
  }
  void remember(int32_t n, SnapshotPlace place) noexcept override {
    for (const auto& cache : caches_) cache->remember(n, place);
  }
  void set_first_held(int32_t layer, int32_t entry) noexcept override {
    const CacheIndex at = layer_indices_[static_cast<size_t>(layer)];
    caches_[at.cache]->set_first_held(at.index, entry);
  }
  /// If one cache refuses, the plans of the others are dropped.
  [[nodiscard]] Result<CachePlan> plan(int32_t n) override {
    GEN_ASSIGN(const CachePlan plan, caches_[0]->plan(n));
    for (size_t c = 1; c < caches_.size(); ++c) {
      GEN_ASSIGN(const CachePlan other, caches_[c]->plan(n));
      GEN_ASSERT(other.start == plan.start && other.count == plan.count);
    }
    return plan;
  }

  [[nodiscard]] std::span<const engine::KvLayer> kv_layers() const noexcept override {
    return kv_layers_;
  }
  [[nodiscard]] int32_t parts() const noexcept override {
    return static_cast<int32_t>(part_indices_.size());
  }
  [[nodiscard]] engine::EngineMemory& engine_memory(int32_t part) const noexcept override {
    const CacheIndex at = part_indices_[static_cast<size_t>(part)];
    return caches_[at.cache]->engine_memory(at.index);
  }
  [[nodiscard]] Result<engine::KvTables> tables(int32_t part, const CachePlan& plan) override {
    const CacheIndex at = part_indices_[static_cast<size_t>(part)];
    return caches_[at.cache]->tables(at.index, plan);
  }
  Status stage(int32_t layer, const CachePlan& plan) override {
    const CacheIndex at = layer_indices_[static_cast<size_t>(layer)];
    return caches_[at.cache]->stage(at.index, plan);
  }
  [[nodiscard]] bool stages(const CachePlan& plan) const noexcept override {
    return std::any_of(caches_.begin(), caches_.end(),
                       [&](const auto& cache) { return cache->stages(plan); });
  }

  void commit(const CachePlan& plan, Kept kept) noexcept override {
    for (const auto& cache : caches_) cache->commit(plan, kept);
  }
  /// Finishes the pending moves of all caches first: then no cut can fail after another has
  /// succeeded.
  Status truncate(int32_t n) override {
    if (n >= length()) return {};
    if (n > 0) GEN_TRY(plan(0).status());
    return cut_all(std::max(n, 0));
  }

  [[nodiscard]] Shifts* shifting() noexcept override {
    const bool can = std::all_of(caches_.begin(), caches_.end(),
                                 [](const auto& cache) { return cache->shifting() != nullptr; });
    return can ? this : nullptr;
  }
  /// Finishes the pending moves of all caches first, as truncate() does. If a cache fails behind
  /// others, all are cut to what they still have in common.
  Status shift(int32_t first, int32_t n) override {
    GEN_TRY(plan(0).status());
    for (size_t c = 0; c < caches_.size(); ++c) {
      Status shifted;
      try {
        shifted = caches_[c]->shifting()->shift(first, n);
      } catch (...) {
        if (c > 0) GEN_TRY(cut_all(first));
        throw;
      }
      if (shifted.ok()) continue;
      if (c > 0) GEN_TRY(cut_all(first));
      return shifted;
    }
    return {};
  }

  [[nodiscard]] MemoryUse memory() const noexcept override {
    MemoryUse all;
    all.metadata = sizeof(*this);
    for (const auto& cache : caches_) {
      const MemoryUse use = cache->memory();
      all.resident += use.resident;
      all.payload += use.payload;
      all.metadata += use.metadata;
    }
    return all;
  }
  [[nodiscard]] size_t max_resident() const noexcept override {
    size_t most = 0;
    for (const auto& cache : caches_) most += cache->max_resident();
    return most;
  }
  [[nodiscard]] size_t on_device() const noexcept override {
    size_t now = 0;
    for (const auto& cache : caches_) now += cache->on_device();
    return now;
  }
  [[nodiscard]] size_t max_on_device() const noexcept override {
    size_t most = 0;
    for (const auto& cache : caches_) most += cache->max_on_device();
    return most;
  }

  [[nodiscard]] Taken taken(bool in_host) const noexcept override {
    Taken all;
    for (const auto& cache : caches_) {
      const Taken one = cache->taken(in_host);
      all.now += one.now;
      all.most += one.most;
    }
    return all;
  }

  [[nodiscard]] Result<std::unique_ptr<KvCache>> fork() override {
    std::vector<std::unique_ptr<KvCache>> forks;
    for (const auto& cache : caches_) {
      GEN_ASSIGN(auto made, cache->fork());
      forks.push_back(std::move(made));
    }
    return std::unique_ptr<KvCache>(std::make_unique<SplitCache>(std::move(forks), layer_indices_));
  }

 private:
  Status cut_all(int32_t n) {
    // A cache may have to leave fewer, and then so do the others.
    for (int32_t left = n;; n = left) {
      for (const auto& cache : caches_) GEN_TRY(cache->truncate(n));
      left = least([](const KvCache& cache) { return cache.length(); });
      if (left >= n) return {};
    }
  }
  template <typename F>
  [[nodiscard]] int32_t least(F&& number) const noexcept {
    int32_t least = number(*caches_[0]);
    for (const auto& cache : caches_) least = std::min(least, number(*cache));
    return least;
  }

  std::vector<std::unique_ptr<KvCache>> caches_;  // at least one
  std::vector<CacheIndex> layer_indices_;
  std::vector<CacheIndex> part_indices_;
  CacheTraits traits_;
  std::vector<LayerShape> shapes_;
  std::vector<engine::KvLayer> kv_layers_;
};

}  // namespace

Result<std::unique_ptr<KvCache>> make_split_cache(std::vector<std::unique_ptr<KvCache>> caches,
                                                  std::span<const int32_t> cache_of_layer) {
  std::vector<size_t> taken(caches.size());
  std::vector<CacheIndex> layers;
  for (const int32_t cache : cache_of_layer) {
    const auto c = static_cast<size_t>(cache);
    if (cache < 0 || c >= caches.size() || taken[c] == caches[c]->layers().size()) {
      return error(Code::kInvalidArgument, "layer %zu is in cache %d of %zu, which lacks it",
                   layers.size(), cache, caches.size());
    }
    layers.push_back({c, static_cast<int32_t>(taken[c]++)});
  }
  for (size_t c = 0; c < caches.size(); ++c) {
    if (taken[c] == caches[c]->layers().size()) continue;
    return error(Code::kInvalidArgument, "cache %zu has %zu layers, %zu are named", c,
                 caches[c]->layers().size(), taken[c]);
  }
  if (caches.empty()) return Status(Code::kInvalidArgument, "a split cache of no caches");
  for (const auto& cache : caches) {
    if (cache->traits().cuts_exactly || !cache->traits().has_means) continue;
    return error(Code::kUnsupported,
                 "a split cache of %s caches, which do not always cut where they are told to",
                 cache->traits().layout);
  }
  return std::unique_ptr<KvCache>(
      std::make_unique<SplitCache>(std::move(caches), std::move(layers)));
}

}  // namespace gen::cache
