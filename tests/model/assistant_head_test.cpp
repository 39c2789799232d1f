// SPDX-License-Identifier: Apache-2.0
// Proves that an assistant of gemma4 computes what its definition says (a separate forward pass in
// double precision) from the keys and values of the model's last layers, in every kind of cache,
// alone and beside others, that it changes no cache and shares the model's embedding; and what is
// refused and how it says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cache/sequence/compressed_cache.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/tiered_cache.h"
#include "support/far_engine.h"
#include "support/tiny_assistant.h"
#include "support/tiny_head.h"

namespace gen::model {
namespace {

using test::features_of;
using test::Floats;
using test::LoadedTiny;
using test::relative_error;
using test::TinyAssistant;
using test::TinyAssistantSpec;
using test::TinyModel;
using test::TinyModelSpec;

TinyModelSpec assisted_gemma() {
  TinyModelSpec spec;
  spec.architecture = "gemma4";
  spec.layers = 6;
  spec.window = 5;
  spec.local = {1, 1, 0, 1, 1, 0};
  spec.local_head_dim = 8;
  spec.freq_factors = {1.0F, 1.5F, 2.0F, 4.0F, 8.0F, 8.0F, 9.0F, 9.0F};
  return spec;
}

/// The first tokens of a text.
std::vector<int32_t> read_text(size_t n) {
  std::vector<int32_t> text(n);
  for (size_t i = 0; i < n; ++i) text[i] = static_cast<int32_t>(7 * i * i + 3 * i + 5) % 50;
  return text;
}

/// In as many steps as the cache needs.
void feed_all(const LoadedTiny& loaded, cache::KvCache& cache, std::span<const int32_t> text) {
  while (!text.empty()) {
    const auto limit = static_cast<size_t>(cache.plan_limit());
    const auto part = text.first(std::min(text.size(), limit));
    loaded.feed(cache, part);
    text = text.subspan(part.size());
  }
}

struct ReadRows {
  Floats logits;
  Floats states;
};

/// A row of the head for each cache, in one pass.
ReadRows read_rows(const DraftHead& head, const std::vector<cache::KvCache*>& caches, int32_t token,
                   const Floats& features) {
  const Model& model = *head.first;
  test::OwnedBatch batch;
  for (cache::KvCache* const cache : caches) EXPECT_TRUE(batch.read(*cache, token).ok());
  batch.finish(model.traits().vocab_size);
  Floats all;
  for (size_t i = 0; i < caches.size(); ++i) {
    all.insert(all.end(), features.begin(), features.end());
  }
  batch.batch.features = all;
  ReadRows rows;
  rows.states.resize(caches.size() * static_cast<size_t>(head.own_width));
  const graph::Tap tap = {head.state, rows.states.data()};
  batch.batch.taps = {&tap, 1};
  const Status status = model.forward(batch.batch);
  EXPECT_TRUE(status.ok()) << status.message();
  rows.logits = batch.results(model.traits().vocab_size);
  return rows;
}

std::shared_ptr<const DraftHead> assistant_of(const LoadedTiny& loaded,
                                              const std::vector<std::byte>& bytes) {
  auto head = load_draft_head(gguf::GgufFile::parse(bytes).value(),
                              loaded.model().head_target().value(), false, true);
  EXPECT_TRUE(head.ok()) << head.status().message();
  return head.ok() ? *head : nullptr;
}

void expect_assistant_defined(const TinyModelSpec& spec, const TinyAssistantSpec& of = {},
                              const test::TinyEngineOptions& options = {}, double most = 2e-5) {
  const TinyModel tiny(spec);
  const LoadedTiny loaded(tiny, options);
  const TinyAssistant assistant(tiny, of);
  const std::vector<std::byte> bytes = assistant.bytes();
  const auto head = assistant_of(loaded, bytes);
  ASSERT_NE(head, nullptr);
  EXPECT_TRUE(head->reads_cache);
  EXPECT_TRUE(head->first->layer_shapes().empty());
  EXPECT_EQ(head->first, head->next);
  EXPECT_EQ(head->taps, std::vector{graph::kNormedTap});
  const Floats features = features_of(1, spec.hidden);
  for (const size_t n : std::initializer_list<size_t>{1, 2, 4, 5, 6, 12, 40}) {
    SCOPED_TRACE(testing::Message() << "behind " << n);
    const std::vector<int32_t> text = read_text(n);
    const auto cache = loaded.cache();
    loaded.feed(*cache, text);
    const TinyAssistant::Drafted want = assistant.drafted(text, 9, features);
    const ReadRows got = read_rows(*head, {cache.get()}, 9, features);
    EXPECT_LT(relative_error(got.logits, want.logits), most);
    EXPECT_LT(relative_error(got.states, want.state), most);
    EXPECT_EQ(cache->length(), static_cast<int32_t>(n));
  }
}

TEST(AssistantHead, IsWhatItsFileSays) {
  expect_assistant_defined(assisted_gemma());
  expect_assistant_defined(assisted_gemma(), {.local = {0, 1, 0}});
  expect_assistant_defined(assisted_gemma(), {.local = {1}});
  expect_assistant_defined(assisted_gemma(), {.local = {0}});
  expect_assistant_defined(assisted_gemma(),
                           {.hidden = 64, .heads = 4, .centroids = true, .seed = 3});
  expect_assistant_defined(assisted_gemma(), {}, {.threads = 3, .level = CpuLevel::kScalar});
}

// Products round what they multiply, and scores that nothing divides magnify it. Results of other
// weights would have errors above 1.
TEST(AssistantHead, IsSoInOtherFormats) {
  TinyModelSpec spec = assisted_gemma();
  expect_assistant_defined(spec, {.hidden = 64, .type = DType::kF16}, {}, 5e-3);
  for (const DType type : {DType::kQ8_0, DType::kQ4_0}) {
    expect_assistant_defined(spec, {.hidden = 64, .type = type}, {}, 0.4);
    spec.type = type;  // of the embedding that both read
    expect_assistant_defined(spec, {.hidden = 64, .type = type}, {}, 0.4);
  }
}

TEST(AssistantHead, IsSoForEveryFormOfItsModel) {
  TinyModelSpec spec = assisted_gemma();
  spec.layer_input = 0;
  expect_assistant_defined(spec);
  spec.keys_as_values = true;
  expect_assistant_defined(spec);
  spec.experts = 6;
  spec.experts_used = 6;
  spec.shared_width = 0;
  expect_assistant_defined(spec);
  spec = assisted_gemma();
  spec.layer_kv_heads = {2, 2, 1, 2, 2, 1};
  expect_assistant_defined(spec);
  for (const int32_t shared : {1, 2, 3}) {  // the last layers that keep are the ones before
    spec = assisted_gemma();
    spec.shared_layers = shared;
    expect_assistant_defined(spec);
  }
  spec.window = 200;  // more than the context
  expect_assistant_defined(spec);
}

// ---- LayoutCaches ----

using LayoutCaches = std::vector<std::pair<std::string, std::unique_ptr<cache::KvCache>>>;

/// Of one format, in all layouts.
LayoutCaches layout_caches(const char* kind, std::span<const cache::LayerShape> shapes,
                           engine::EngineMemory& memory) {
  LayoutCaches all;
  all.emplace_back("contiguous", cache::make_cache(kind, shapes, 128, memory).value());
  for (const int32_t block : {7, 16}) {
    const std::shared_ptr<cache::CachePool> pool =
        cache::CachePool::create(kind, shapes, block, 2, memory).value();
    all.emplace_back("paged", cache::make_paged_cache(pool, 128).value());
  }
  cache::TieredCacheOptions tiers;
  tiers.format = kind;
  tiers.hot_blocks = 2;
  tiers.block_size = 16;
  tiers.hot_bytes = size_t{1} << 20;
  all.emplace_back("tiered", cache::make_tiered_cache(tiers, shapes, 128, memory).value());
  return all;
}

TEST(AssistantHead, ReadsEveryCacheAlike) {
  const TinyModel tiny(assisted_gemma());
  const std::vector<int32_t> text = read_text(90);
  const Floats features = features_of(1, 64);
  test::FarMemory memory(size_t{1} << 30);
  const std::vector<std::byte> bytes = TinyAssistant(tiny, {}).bytes();
  const auto want = TinyAssistant(tiny, {}).drafted(text, 9, features).logits;
  for (const bool far : {false, true}) {
    test::TinyEngineOptions options;
    if (far) options.engine = std::make_shared<test::FarEngine>(memory);
    const LoadedTiny loaded(tiny, options);
    const auto head = assistant_of(loaded, bytes);
    engine::EngineMemory& where = far ? memory : engine::system_memory();
    for (const auto& [kind, error] :
         {std::pair{"fp32", 2e-5}, {"fp16", 2e-2}, {"fp8", 1.0}, {"q4", 2.0}, {"q3", 2.0}}) {
      const LayoutCaches caches = layout_caches(kind, loaded.model().layer_shapes(), where);
      ReadRows first;
      std::vector<cache::KvCache*> together;
      for (const auto& [layout, cache] : caches) {
        SCOPED_TRACE(testing::Message() << (far ? "far " : "") << kind << " " << layout);
        feed_all(loaded, *cache, text);
        const ReadRows got = read_rows(*head, {cache.get()}, 9, features);
        EXPECT_LT(relative_error(got.logits, want), error);
        if (together.empty()) first = got;
        EXPECT_EQ(got.logits, first.logits);
        EXPECT_EQ(got.states, first.states);
        together.push_back(cache.get());
      }
      const ReadRows all = read_rows(*head, together, 9, features);
      for (size_t i = 0; i < together.size(); ++i) {
        const auto at = all.logits.begin() + static_cast<std::ptrdiff_t>(i * first.logits.size());
        EXPECT_TRUE(std::equal(first.logits.begin(), first.logits.end(), at)) << kind << i;
      }
    }
  }
}

// Entries that stand for several positions. Such caches have no windows.
TEST(AssistantHead, ReadsCompressedCaches) {
  TinyModelSpec spec = assisted_gemma();
  spec.window = 0;
  const TinyModel tiny(spec);
  const LoadedTiny loaded(tiny);
  const TinyAssistant assistant(tiny, {.local = {0, 0}});
  const std::vector<std::byte> bytes = assistant.bytes();
  const auto head = assistant_of(loaded, bytes);
  const Floats features = features_of(1, 64);
  const std::vector<int32_t> text = read_text(60);
  Floats last;
  for (const int32_t chunk : {64, 8, 4}) {
    auto made = cache::make_compressed_cache(loaded.model().layer_shapes(), 128, chunk,
                                             engine::system_memory());
    ASSERT_TRUE(made.ok()) << made.status().message();
    const auto cache = std::move(made).value();
    feed_all(loaded, *cache, text);
    const ReadRows got = read_rows(*head, {cache.get()}, 9, features);
    if (chunk == 64) {  // nothing is compressed yet
      EXPECT_LT(relative_error(got.logits, assistant.drafted(text, 9, features).logits), 2e-5);
    } else {
      EXPECT_NE(got.logits, last);
    }
    last = got.logits;
    for (const float value : last) EXPECT_TRUE(std::isfinite(value));
    EXPECT_EQ(read_rows(*head, {cache.get()}, 9, features).logits, last);
  }
}

// What a session says next does not depend on whether a head has read its cache.
TEST(AssistantHead, ChangesNoCache) {
  const TinyModel tiny(assisted_gemma());
  const LoadedTiny loaded(tiny);
  const std::vector<std::byte> bytes = TinyAssistant(tiny, {}).bytes();
  const auto head = assistant_of(loaded, bytes);
  const Floats features = features_of(1, 64);
  for (const char* kind : {"fp32", "q4"}) {
    const LayoutCaches reading =
        layout_caches(kind, loaded.model().layer_shapes(), engine::system_memory());
    const LayoutCaches alone =
        layout_caches(kind, loaded.model().layer_shapes(), engine::system_memory());
    for (size_t i = 0; i < reading.size(); ++i) {
      for (size_t n = 1; n < 60; n += std::min(1 + n / 3, size_t{12})) {
        const std::vector<int32_t> more = read_text(std::min(1 + n / 3, size_t{12}));
        EXPECT_EQ(loaded.feed(*reading[i].second, more), loaded.feed(*alone[i].second, more));
        read_rows(*head, {reading[i].second.get()}, 9, features);
        read_rows(*head, {reading[i].second.get()}, 4, features);
      }
    }
  }
}

TEST(AssistantHead, RefusesWhatDoesNotRead) {
  const TinyModel tiny(assisted_gemma());
  const LoadedTiny loaded(tiny);
  const std::vector<std::byte> bytes = TinyAssistant(tiny, {}).bytes();
  const auto head = assistant_of(loaded, bytes);
  const Floats features = features_of(2, 64);
  const auto says = [&](const auto& change) {
    const auto cache = loaded.cache();
    loaded.feed(*cache, read_text(4));
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.read(*cache, 9).ok());
    [[maybe_unused]] const auto kept = change(batch, *cache);
    batch.finish(50);
    batch.batch.features = std::span(features).first(batch.tokens.size() * 64);
    const Status status = head->first->forward(batch.batch);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_NE(says([](test::OwnedBatch& of, cache::KvCache& cache) {
              of.sequences[0].plan = cache.plan(1).value();
              return 0;
            }).find("a plan of 1 entries from 4: a row reads entries, and adds none"),
            std::string::npos);
  EXPECT_NE(says([](test::OwnedBatch& of, cache::KvCache&) {
              of.sequences[0].plan.start = 0;
              return 0;
            }).find("a plan of 0 entries from 0"),
            std::string::npos);
  EXPECT_NE(says([](test::OwnedBatch& of, cache::KvCache&) {
              of.sequences[0].n_rows = 2;
              of.tokens.push_back(1);
              of.positions.push_back(4);
              of.wants.push_back(1);
              return 0;
            }).find("has 2 rows"),
            std::string::npos);
  EXPECT_NE(says([](test::OwnedBatch& of, cache::KvCache& cache) {
              EXPECT_TRUE(of.read(cache, 3).ok());
              return 0;
            }).find("share a cache"),
            std::string::npos);
  EXPECT_NE(
      says([](test::OwnedBatch& of, cache::KvCache&) {
        const cache::LayerShape one = {.kv_heads = 1, .k_dim = 4, .v_dim = 4};
        auto other = cache::make_cache("fp32", {&one, 1}, 16, engine::system_memory()).value();
        of.sequences[0].cache = other.get();
        return other;
      }).find("a cache of 1 layers for a model of 6"),
      std::string::npos);
}

// ---- Files ----

TEST(AssistantHead, SharesTheModelsEmbedding) {
  TinyModelSpec spec = assisted_gemma();
  spec.vocab = 2000;
  const TinyModel tiny(spec);
  auto loaded = std::make_unique<LoadedTiny>(tiny);
  const TinyAssistant assistant(tiny, {});
  const std::vector<std::byte> bytes = assistant.bytes();
  const auto head = assistant_of(*loaded, bytes);
  const size_t own = head->first->memory("weights").value();
  EXPECT_LT(own, bytes.size() + bytes.size() / 4);  // tiles may be padded; the table is 512,000
  const std::vector<int32_t> text = read_text(20);
  const Floats features = features_of(1, 64);
  const auto cache = loaded->cache();
  loaded->feed(*cache, text);
  const std::vector<std::byte> freed = loaded->release();  // it lives on without its model
  EXPECT_LT(relative_error(read_rows(*head, {cache.get()}, 9, features).logits,
                           assistant.drafted(text, 9, features).logits),
            2e-5);
}

std::string assistant_refusal(const TinyModelSpec& model, const std::vector<std::byte>& bytes,
                              Code code) {
  const LoadedTiny loaded{TinyModel(model)};
  auto head = load_draft_head(gguf::GgufFile::parse(bytes).value(),
                              loaded.model().head_target().value(), false, true);
  EXPECT_EQ(head.status().code(), code) << head.status().message();
  return head.ok() ? "" : head.status().message();
}

std::string assistant_refusal(const TinyAssistantSpec& spec, Code code = Code::kFormat) {
  const TinyModel tiny(assisted_gemma());
  return assistant_refusal(assisted_gemma(), TinyAssistant(tiny, spec).bytes(), code);
}

TEST(AssistantHead, RefusalsNameWhatDoesNotFit) {
  const TinyModel tiny(assisted_gemma());
  const std::vector<std::string> tensors = TinyAssistant(tiny, {}).tensors();
  ASSERT_EQ(tensors.size(), 4U + 4 * 11);
  for (const std::string& name : tensors) {
    if (name.ends_with("layer_output_scale.weight")) continue;
    EXPECT_NE(assistant_refusal({.without = name}).find(name), std::string::npos);
    EXPECT_NE(assistant_refusal({.misshapen = name}).find(name), std::string::npos);
  }
  EXPECT_NE(
      assistant_refusal({.extra = "blk.0.attn_k.weight"}, Code::kUnsupported).find("blk.0.attn_k"),
      std::string::npos);
  for (const char* key : {"embedding_length_out", "attention.sliding_window_pattern", "block_count",
                          "attention.head_count", "embedding_length", "feed_forward_length"}) {
    EXPECT_NE(assistant_refusal({.without = key}).find(key), std::string::npos);
  }
  EXPECT_EQ(assistant_refusal({.other = {{"embedding_length_out", 96}}}),
            "gemma4-assistant.embedding_length_out is 96, and the model's width is 64");
  EXPECT_EQ(assistant_refusal({.other = {{"nextn_predict_layers", 1}}}),
            "gemma4-assistant.nextn_predict_layers is 1, outside [4, 4]");
  EXPECT_EQ(assistant_refusal({.other = {{"attention.sliding_window", 6}}}),
            "block 0 has window 6, cache layer 4, which it reads, has 5");
  EXPECT_EQ(assistant_refusal({.other = {{"attention.head_count_kv", 1}}}),
            "block 0 has kv heads 1, cache layer 4, which it reads, has 2");
  EXPECT_NE(assistant_refusal({.other = {{"attention.key_length", 18}}}).find("blk.3.attn_q"),
            std::string::npos);
  EXPECT_EQ(assistant_refusal({.rope_base = 20000.0F}),
            "block 0 turns by other angles than cache layer 4, which it reads");
  EXPECT_EQ(assistant_refusal({.without = "rope_freqs.weight"}),
            "block 3 turns by other angles than cache layer 5, which it reads");
}

TEST(AssistantHead, RefusesOtherModels) {
  const TinyModel tiny(assisted_gemma());
  const std::vector<std::byte> bytes = TinyAssistant(tiny, {}).bytes();
  for (const char* family : {"llama", "gemma3"}) {
    TinyModelSpec other;
    other.architecture = family;
    EXPECT_EQ(assistant_refusal(other, bytes, Code::kUnsupported),
              std::string("an assistant of gemma4 for a model ") + family);
  }
  TinyModelSpec local = assisted_gemma();
  local.local = {1, 1, 1, 1, 1, 1};
  EXPECT_EQ(assistant_refusal(local, bytes, Code::kFormat),
            "block 3 reads a layer without a window, the model has none");
  TinyModelSpec narrow = assisted_gemma();
  narrow.window = 1;
  narrow.local_head_dim = 8;
  const TinyModel of_narrow(narrow);
  EXPECT_EQ(assistant_refusal(narrow, TinyAssistant(of_narrow, {}).bytes(), Code::kUnsupported),
            "block 0 reads cache layer 4, which has a window of 1");
  TinyModelSpec vocab = assisted_gemma();
  vocab.vocab = 51;
  EXPECT_NE(assistant_refusal(vocab, bytes, Code::kFormat).find("token_embd.weight"),
            std::string::npos);
}

/// What a model says whose last `layers` layers are on a device.
std::string split_refusal(int32_t layers) {
  const TinyModel tiny(assisted_gemma());
  test::FarMemory memory(size_t{1} << 28);
  test::TinyEngineOptions options;
  options.engine = std::make_shared<test::FarEngine>(memory);
  options.host = test::cpu_engine();
  options.on_device.layers = layers;
  const LoadedTiny loaded(tiny, options);
  const std::vector<std::byte> bytes = TinyAssistant(tiny, {}).bytes();
  auto head = load_draft_head(gguf::GgufFile::parse(bytes).value(),
                              loaded.model().head_target().value(), false, true);
  if (head.ok()) return "";
  EXPECT_EQ(head.status().code(), Code::kUnsupported);
  return head.status().message();
}

TEST(AssistantHead, RefusesModelsOnSeveralEngines) {
  EXPECT_EQ(split_refusal(6), "");  // all on the device, and so is the assistant
  EXPECT_EQ(split_refusal(0), "");
  EXPECT_EQ(split_refusal(1), "the head reads cache layers 4 and 5, which are on two engines");
  EXPECT_EQ(split_refusal(2), "engine far has no embedding to share");
}

}  // namespace
}  // namespace gen::model
