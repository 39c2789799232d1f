// SPDX-License-Identifier: Apache-2.0
// Every form of cache that sessions can have, over one small model of random weights. Shared by
// tests that compare a session with a fresh one of the same form.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cache/prefix/prefix_cache.h"
#include "cache/sequence/compressed_cache.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/tiered_cache.h"
#include "engine/memory/host_memory.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"
#include "generate/said.h"
#ifdef GEN_FORMS_CUDA
#include "cuda/engine/op_bench.h"
#endif
#include "support/drift_model.h"
#include "support/far_engine.h"
#include "support/fake_model.h"
#include "support/loaded_tiny.h"

namespace gen::generate {

struct CacheForm {
  enum class Layout : int32_t { kPlain, kPaged, kCompressed, kTiered };
  const char* kind = "fp32";
  Layout layout = Layout::kPlain;
  int32_t block_size = 0;     // or positions of a chunk
  int32_t prefix_blocks = 0;  // 0: no prefix cache
  int32_t pool_blocks = 0;    // 0: enough for all
  bool far = false;  // on an engine whose memory only operations may touch; with GEN_FORMS_CUDA on
                     // the CUDA engine, and all forms are
  bool recurrent = false;  // for a model with recurrent blocks
  bool window = false;     // for a model with windows in some layers
  bool patient = false;    // calls wait for blocks of a small pool as long as others hold them

  friend std::ostream& operator<<(std::ostream& out, const CacheForm& form) {
    constexpr const char* kNames[] = {"plain", "paged", "compressed", "tiered"};
    return out << (form.far ? "far " : "") << (form.recurrent ? "recurrent " : "")
               << (form.window ? "window " : "") << form.kind << " "
               << kNames[static_cast<size_t>(form.layout)] << " " << form.block_size << ", "
               << form.prefix_blocks << " prefix blocks, pool of " << form.pool_blocks;
  }
};

inline std::vector<CacheForm> all_cache_forms() {
  using Layout = CacheForm::Layout;
  std::vector<CacheForm> forms;
#ifndef GEN_FORMS_CUDA
  for (const char* kind : {"fp32", "fp16", "fp8", "q4", "q3"}) {
    forms.push_back({.kind = kind});
    forms.push_back({.kind = kind, .layout = Layout::kPaged, .block_size = 7});
    forms.push_back({.kind = kind, .layout = Layout::kPaged, .block_size = 8, .prefix_blocks = 40});
  }
  // Formats matter less here, and files take time.
  for (const char* kind : {"fp32", "q4"}) {
    forms.push_back({.kind = kind, .layout = Layout::kTiered, .block_size = 16});
  }
  forms.push_back({.layout = Layout::kCompressed, .block_size = 8});
#endif
  forms.push_back({.kind = "fp16", .far = true});
  forms.push_back({.layout = Layout::kPaged, .block_size = 8, .prefix_blocks = 40, .far = true});
  forms.push_back({.kind = "q4", .layout = Layout::kTiered, .block_size = 16, .far = true});
  forms.push_back({.layout = Layout::kCompressed, .block_size = 8, .far = true});
  return forms;
}

/// And of models with a recurrent state.
inline std::vector<CacheForm> all_forms_and_recurrent() {
  std::vector<CacheForm> forms = all_cache_forms();
  forms.push_back({.recurrent = true});
  forms.push_back({.layout = CacheForm::Layout::kPaged,
                   .block_size = 8,
                   .prefix_blocks = 40,
                   .recurrent = true});
  return forms;
}

constexpr int32_t kFormsContext = 96;
constexpr int32_t kFormsVocab = 50;
constexpr int32_t kFormsRewind = 5;  // of windows

/// A model and the memory of its caches.
struct FormsPlace {
  const model::Model& model;
  engine::EngineMemory& memory;
};

inline FormsPlace forms_place(bool far, bool recurrent = false, bool window = false) {
  test::TinyModelSpec spec;
  if (window) {
    spec.context = kFormsContext;
    spec.vocab = kFormsVocab;
    spec.layers = 3;
    spec.window = 9;
    spec.local = {1, 0, 1};
#ifdef GEN_FORMS_CUDA
    static const std::shared_ptr<engine::Engine> engine = test::cuda_engine();
    static const test::LoadedTiny tiny{test::TinyModel(spec), {.engine = engine}};
    return {tiny.model(), engine->memory()};
#else
    static const test::LoadedTiny tiny{test::TinyModel(spec)};
    return {tiny.model(), engine::system_memory()};
#endif
  }
  if (recurrent) {
    spec = test::drift_spec();
    spec.context = kFormsContext;
    spec.vocab = kFormsVocab;
    static const test::LoadedTiny tiny{test::TinyModel(spec), test::with_drift()};
    return {tiny.model(), engine::system_memory()};
  }
  spec.context = kFormsContext;
  spec.vocab = kFormsVocab;
#ifdef GEN_FORMS_CUDA
  static_cast<void>(far);
  static const std::shared_ptr<engine::Engine> engine = test::cuda_engine();
  static const test::LoadedTiny cuda{test::TinyModel(spec), {.engine = engine}};
  return {cuda.model(), engine->memory()};
#else
  if (!far) {
    static const test::LoadedTiny tiny{test::TinyModel(spec)};
    return {tiny.model(), engine::system_memory()};
  }
  static test::FarMemory memory(size_t{8} << 30);
  static const test::LoadedTiny tiny{test::TinyModel(spec),
                                     {.engine = std::make_shared<test::FarEngine>(memory)}};
  return {tiny.model(), memory};
#endif
}

/// Sessions then have caches of that form, for layers of these shapes.
inline void set_caches(GeneratorOptions* of, const CacheForm& form,
                       std::span<const cache::LayerShape> shapes, engine::EngineMemory& memory) {
  using Layout = CacheForm::Layout;
  GeneratorOptions& options = *of;
  options.kv_dtype = form.kind;
  options.memory = &memory;
  if (form.layout == Layout::kPaged) {
    std::shared_ptr<cache::CachePool> pool =
        cache::CachePool::create(
            form.kind, shapes, form.block_size, 2, memory,
            form.window ? cache::PoolWindows{kFormsRewind, 2} : cache::PoolWindows{})
            .value();
    options.cache_factory = [pool](std::span<const cache::LayerShape>, int32_t capacity) {
      return cache::make_paged_cache(pool, capacity);
    };
    if (form.patient) options.max_starving = options.least_starving = std::chrono::hours(1);
    if (form.pool_blocks > 0) {  // sized in MiB, so blocks are taken out for good
      std::vector<cache::Block*> taken(pool->blocks().available() -
                                       static_cast<size_t>(form.pool_blocks));
      EXPECT_TRUE(pool->blocks().allocate(taken).ok());
    }
    if (form.prefix_blocks > 0) {
      const std::shared_ptr<cache::BlockPool> blocks(pool, &pool->blocks());
      options.prefix_cache =
          cache::PrefixCache::create(blocks, form.prefix_blocks,
                                     {pool->reaches().begin(), pool->reaches().end()})
              .value();
    }
  } else if (form.layout == Layout::kCompressed) {
    options.cache_factory = [form, &memory](std::span<const cache::LayerShape> layers,
                                            int32_t capacity) {
      return cache::make_compressed_cache(layers, capacity, form.block_size, memory);
    };
  } else if (form.layout == Layout::kTiered) {
    options.cache_factory = [form, &memory](std::span<const cache::LayerShape> layers,
                                            int32_t capacity) {
      cache::TieredCacheOptions tiers;
      tiers.format = form.kind;
      tiers.hot_blocks = 2;
      tiers.block_size = form.block_size;
      tiers.hot_bytes = size_t{1} << 20;
      return cache::make_tiered_cache(tiers, layers, capacity, memory);
    };
  }
}

/// A generator whose sessions have caches of that form. Its text is a fake tokenizer's. With `keep`
/// full contexts shift, and keep so many tokens.
inline std::shared_ptr<const Generator> generator_of(const CacheForm& form, int32_t chunk = 8,
                                                     int32_t max_sequences = 8,
                                                     std::shared_ptr<Drafter> drafter = nullptr,
                                                     DraftPolicy policy = {},
                                                     std::optional<int32_t> keep = std::nullopt) {
  GeneratorOptions options;
  options.shift_context = keep.has_value();
  options.context_keep = keep.value_or(0);
  options.draft_policy = std::move(policy);
  options.prefill_chunk = chunk;
  options.max_sequences = max_sequences;
  options.drafter = std::move(drafter);
  // Of recurrent models: in every text, and more than the budget holds.
  options.snapshot_every = 1 + chunk % 7;
  options.window_rewind = kFormsRewind;
  options.window_copies = 1;
  const FormsPlace place = forms_place(form.far, form.recurrent, form.window);
  set_caches(&options, form, place.model.layer_shapes(), place.memory);
  std::vector<std::string> pieces;
  for (int32_t i = 0; i < kFormsVocab - 2; ++i) {
    pieces.push_back(std::string(1, static_cast<char>('a' + i % 26)));
  }
  const std::shared_ptr<const model::Model> model(std::shared_ptr<void>(), &place.model);
  auto made = Generator::create(model, std::make_shared<test::FakeTokenizer>(pieces), options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

inline Tokens tokens_of(const Session& session) { return session.tokens().value(); }

/// Sessions of the same form that share nothing with others: the oracle.
class FreshSessions {
 public:
  /// A plain cache stands for a paged or a tiered one: they hold the same entries.
  explicit FreshSessions(const CacheForm& form)
      : generator_(generator_of(
            form.layout == CacheForm::Layout::kCompressed
                ? CacheForm{.layout = form.layout, .block_size = form.block_size}
                : CacheForm{.kind = form.kind, .recurrent = form.recurrent, .window = form.window},
            kFormsContext, 1)) {}
  [[nodiscard]] Said say(const Tokens& prompt, int32_t n,
                         const std::vector<model::AdapterChoice>& adapters = {}) const {
    return generate::say(*generator_->new_session().value(), prompt, n, adapters);
  }
  [[nodiscard]] std::shared_ptr<Session> session() const {
    return generator_->new_session().value();
  }

 private:
  std::shared_ptr<const Generator> generator_;
};

}  // namespace gen::generate
