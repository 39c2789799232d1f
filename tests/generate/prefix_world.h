// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of prefix reuse: a small model on the CPU engine that counts its rows and can
// be stopped before a pass, and generators over pools with and without a prefix cache.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cache/prefix/prefix_cache.h"
#include "cache/sequence/paged_cache.h"
#include "engine/memory/host_memory.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "generate/said.h"
#include "generate/watched_model.h"
#include "support/drift_model.h"

namespace gen::generate {

constexpr int32_t kContext = 128;

struct PrefixOptions {
  std::string kind = "fp32";
  int32_t block_size = 16;
  int32_t capacity = 100;  // 0: no prefix cache
  int32_t chunk = 16;
  int32_t sequences = 4;  // in one step
  bool recurrent = false;
  int32_t window = 0;  // of two layers in three; sequences give back the blocks of these
  int32_t every = kDefaultSnapshotEvery;       // GeneratorOptions::snapshot_every
  int64_t budget = -1;                         // and snapshot_budget
  Allocator* allocator = &system_allocator();  // of a recurrent model: its states, too
};

class PrefixWorld {
 public:
  explicit PrefixWorld(PrefixOptions wanted = {}, uint32_t seed = 1)
      : tiny_(wanted.recurrent
                  ? test::LoadedTiny(test::TinyModel(drift()), with_drift(wanted.allocator))
                  : test::LoadedTiny(test::TinyModel(spec(seed, wanted.window)))) {
    model = std::make_shared<WatchedModel>(tiny_.model());
    pool = cache::CachePool::create(wanted.kind, model->layer_shapes(), wanted.block_size, 1,
                                    engine::system_memory(),
                                    {wanted.window > 0 ? 0 : -1, 0, wanted.chunk})
               .value();
    options.kv_dtype = wanted.kind;
    options.prefill_chunk = wanted.chunk;
    options.max_sequences = wanted.sequences;
    options.snapshot_every = wanted.every;
    options.snapshot_budget = wanted.budget;
    options.cache_factory = [this](std::span<const cache::LayerShape>, int32_t capacity) {
      return cache::make_paged_cache(pool, capacity);
    };
    if (wanted.capacity > 0) {
      options.prefix_cache =
          cache::PrefixCache::create(blocks(), wanted.capacity, reaches()).value();
    }
  }

  static test::TinyModelSpec spec(uint32_t seed, int32_t window = 0) {
    test::TinyModelSpec made;
    made.context = kContext;
    made.seed = seed;
    if (window > 0) {
      made.layers = 3;
      made.window = window;
      made.local = {1, 0, 1};
    }
    return made;
  }
  static test::TinyEngineOptions with_drift(Allocator* allocator) {
    test::TinyEngineOptions made = test::with_drift();
    made.allocator = allocator;
    return made;
  }
  static test::TinyModelSpec drift() {
    test::TinyModelSpec made = test::drift_spec();
    made.context = kContext;
    return made;
  }
  [[nodiscard]] std::shared_ptr<cache::BlockPool> blocks() const {
    return std::shared_ptr<cache::BlockPool>(pool, &pool->blocks());
  }
  [[nodiscard]] std::vector<int32_t> reaches() const {
    return {pool->reaches().begin(), pool->reaches().end()};
  }
  /// Takes blocks out of the pool until this many are left.
  void leave_free(size_t count) {
    std::vector<cache::Block*> taken(pool->blocks().available() - count);
    EXPECT_TRUE(pool->blocks().allocate(taken).ok());
  }
  std::shared_ptr<const Generator> generator() {
    if (made_ == nullptr) made_ = Generator::create(model, nullptr, options).value();
    return made_;
  }
  std::shared_ptr<Session> session() { return generator()->new_session().value(); }
  /// Clears the prefix cache.
  void clear() {
    made_.reset();
    const int32_t capacity = static_cast<int32_t>(pool->blocks().capacity());
    options.prefix_cache.reset();
    options.prefix_cache = cache::PrefixCache::create(blocks(), capacity, reaches()).value();
  }

 private:
  test::LoadedTiny tiny_;

 public:
  std::shared_ptr<WatchedModel> model;
  std::shared_ptr<cache::CachePool> pool;
  GeneratorOptions options;

 private:
  std::shared_ptr<const Generator> made_;
};

inline Said say(PrefixWorld& world, const Tokens& prompt, int32_t n) {
  Said said = say(*world.session(), prompt, n);
  EXPECT_TRUE(said.status.ok()) << said.status.message();
  return said;
}

}  // namespace gen::generate
