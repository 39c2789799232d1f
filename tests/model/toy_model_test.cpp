// SPDX-License-Identifier: Apache-2.0
// An architecture that is made up here and is not in the library's table: its blocks differ in kv
// heads, windows, angles and widths, some do not attend, some look at an earlier block's keys and
// values, and only its own `read` knows the keys that say so. Proves that such a file computes what
// its definition says, over every kind of cache, in whatever steps tokens come.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "cache/sequence/cache_state.h"
#include "cache/sequence/lane_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/tiered_cache.h"
#include "cache/state/state_file.h"
#include "engine/memory/host_memory.h"
#include "model/arch/decoder_builder.h"
#include "model/arch/decoder_keys.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

using graph::SiteKind;
using graph::ValueId;

Status read_toy(const arch::DenseStyle&, KeyReader& keys, HParams* h) {
  GEN_TRY(arch::read_model(keys, h));
  GEN_TRY(arch::read_feed_forward(keys, h));
  GEN_TRY(arch::read_heads(keys, true, h));
  GEN_TRY(arch::read_windows(keys, {}, h));
  GEN_TRY(arch::read_rope(keys, {.kind = engine::RopeKind::kAdjacent}, h));
  double local_base = 0.0;
  GEN_TRY(keys.number_or("rope.local_freq_base", 0.0, 0.0, 1e9, &local_base));
  std::vector<int32_t> shares(h->layers.size(), 0);
  if (keys.has("attention.shares")) {
    GEN_TRY(keys.per_layer("attention.shares", 0, h->n_layers, &shares));
  }
  for (size_t i = 0; i < h->layers.size(); ++i) {
    LayerParams& layer = h->layers[i];
    if (layer.attention.window > 0 && local_base > 0.0) layer.rope.base = local_base;
    if (shares[i] == 0) continue;
    layer.attention.use = graph::CacheUse::kShared;
    layer.attention.shared = shares[i] - 1;
  }
  return {};
}

void build_toy(const arch::DenseStyle&, const HParams& h, Weights& weights,
               graph::GraphBuilder& graph) {
  using arch::Bias;
  arch::DecoderBuilder d(h, weights, graph);
  ValueId x = d.embedding();
  for (int32_t layer = 0; layer < h.n_layers; ++layer) {
    d.begin_layer(layer);
    if (d.layer().mixer == MixerKind::kAttention) {
      const ValueId a = d.norm(x, "attn_norm");
      const ValueId q = d.linear(a, "attn_q", d.q_rows(), SiteKind::kQ, Bias::kNone);
      ValueId k;
      ValueId v;
      if (d.layer().attention.use == graph::CacheUse::kOwn) {
        k = d.linear(a, "attn_k", d.k_rows(), SiteKind::kK, Bias::kNone);
        v = d.linear(a, "attn_v", d.v_rows(), SiteKind::kV, Bias::kNone);
      }
      const ValueId attended = d.attend(q, k, v, arch::HeadNorms::kNone);
      x = d.add(x, d.linear(attended, "attn_output", h.hidden, SiteKind::kAttnOut, Bias::kNone));
    }
    x = d.add(x, d.gated_feed_forward(d.norm(x, "ffn_norm"), engine::Act::kSilu, Bias::kNone));
    d.end_layer(x);
  }
  d.head(x, Bias::kNone);
}

constexpr arch::Architecture kToyRow = {"toy", {}, read_toy, build_toy};
constexpr const arch::Architecture* kToy[] = {&kToyRow};

test::TinyModelSpec toy_spec() {
  test::TinyModelSpec spec;
  spec.architecture = "toy";
  spec.layers = 7;
  spec.layer_kv_heads = {2, 0, 4, 1, 4, 0, 2};
  spec.layer_feed_forward = {96, 32, 64, 128, 96, 160, 64};
  spec.local = {1, 0, 0, 1, 0, 0, 1};
  spec.window = 4;
  spec.chunk = 6;
  spec.local_rope_base = 500.0F;
  spec.shares = {0, 0, 0, 0, 3, 0, 1};  // 4 looks at 2's, 6 at 0's, which has a window
  return spec;
}

test::TinyEngineOptions with_toy(CpuLevel level = detect_cpu_level(), int32_t threads = 1) {
  test::TinyEngineOptions options;
  options.architectures = kToy;
  options.level = level;
  options.threads = threads;
  return options;
}

const std::vector<int32_t> kTokens = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38, 46, 26, 43, 0};

std::vector<float> feed(const test::LoadedTiny& model, cache::KvCache& cache, size_t first,
                        size_t n, size_t step) {
  std::vector<float> all;
  for (size_t at = first; at < first + n; at += step) {
    const size_t count = std::min(step, first + n - at);
    const auto part = model.feed(cache, std::span(kTokens).subspan(at, count));
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(ToyModel, CachesHaveWhatBlocksKeep) {
  const test::LoadedTiny model(test::TinyModel(toy_spec()), with_toy());
  const auto shapes = model.model().layer_shapes();
  ASSERT_EQ(shapes.size(), 3U);  // of blocks 0, 2 and 3
  const cache::LayerShape want[] = {
      {2, 16, 16, 4, engine::RopeKind::kAdjacent, 16, 6},
      {4, 16, 16, 0, engine::RopeKind::kAdjacent, 16, 0},
      {1, 16, 16, 4, engine::RopeKind::kAdjacent, 16, 6},
  };
  for (size_t i = 0; i < 3; ++i) {
    const auto found = cache::shape_difference(shapes[i], want[i]);
    EXPECT_FALSE(found) << "layer " << i << ": " << found.what << " " << found.first;
    ASSERT_NE(shapes[i].rope_table, nullptr);
  }
  // Angles of their own: pair 1 of 8 turns base^(-1/8) as fast as pair 0.
  EXPECT_FLOAT_EQ(shapes[0].rope_table->inv_freq[1], std::pow(500.0F, -0.125F));
  EXPECT_FLOAT_EQ(shapes[1].rope_table->inv_freq[1], std::pow(10000.0F, -0.125F));
  EXPECT_EQ(shapes[2].rope_table, shapes[0].rope_table);
  EXPECT_EQ(model.model().traits().num_layers, 7);
  EXPECT_EQ(model.model().traits().num_kv_heads, 4);
  // Keys and values of 2 + 4 + 1 heads of 16 floats, and nothing for who has none.
  EXPECT_EQ(model.cache()->traits().bytes_per_entry, 7U * 2 * 16 * sizeof(float));
}

TEST(ToyModel, ComputesWhatItsDefinitionSays) {
  const test::TinyModel tiny(toy_spec());
  const std::vector<double> want = tiny.logits(kTokens);
  for (const CpuLevel level : {CpuLevel::kScalar, detect_cpu_level()}) {
    for (const int32_t threads : {1, 3}) {
      const test::LoadedTiny model(tiny, with_toy(level, threads));
      const auto cache = model.cache();
      const std::vector<float> got = feed(model, *cache, 0, kTokens.size(), 5);
      ASSERT_EQ(got.size(), want.size());
      double off = 0.0;
      double size = 0.0;
      for (size_t i = 0; i < want.size(); ++i) {
        off += (static_cast<double>(got[i]) - want[i]) * (static_cast<double>(got[i]) - want[i]);
        size += want[i] * want[i];
      }
      EXPECT_LT(std::sqrt(off / size), 5e-5);  // as plan_model_test, of two layers and of seven
    }
  }
}

TEST(ToyModel, EveryCacheGivesTheSameBits) {
  const test::LoadedTiny model(test::TinyModel(toy_spec()), with_toy());
  const auto shapes = model.model().layer_shapes();
  for (const char* kind : {"fp32", "fp16", "fp8", "q4", "q3"}) {
    SCOPED_TRACE(kind);
    const auto plain = model.cache(kind);
    const std::vector<float> want = feed(model, *plain, 0, kTokens.size(), kTokens.size());
    auto pool = cache::CachePool::create(kind, shapes, 4, 1, engine::system_memory()).value();
    auto store =
        cache::LaneStore::create(kind, shapes, {1, 64, 3, 0, 0}, engine::system_memory()).value();
    cache::TieredCacheOptions tiers;
    tiers.format = kind;
    tiers.block_size = 4;
    tiers.hot_blocks = 1;
    for (const int32_t ahead : {0, 2}) {
      tiers.prefetch_layers = ahead;
      auto tiered = cache::make_tiered_cache(tiers, shapes, 64, engine::system_memory()).value();
      EXPECT_EQ(feed(model, *tiered, 0, kTokens.size(), 2), want) << "tiered, " << ahead;
    }
    auto paged = cache::make_paged_cache(pool, 64).value();
    EXPECT_EQ(feed(model, *paged, 0, kTokens.size(), 3), want) << "paged";
    auto lane = store->lane(0).value();
    EXPECT_EQ(feed(model, *lane, 0, kTokens.size(), 3), want) << "lane";
    const auto single = model.cache(kind);
    EXPECT_EQ(feed(model, *single, 0, kTokens.size(), 1), want) << "one by one";
  }
}

TEST(ToyModel, StatesGoOn) {
  const test::LoadedTiny model(test::TinyModel(toy_spec()), with_toy());
  const auto first = model.cache("fp16");
  feed(model, *first, 0, 9, 9);
  const auto contents = [&](cache::StateWriter& to) { return first->save(to); };
  std::vector<std::byte> state(cache::state_size(contents).value());
  ASSERT_TRUE(cache::save_state(cache::StateKind::kModelCache, contents, state).ok());
  const std::vector<float> want = feed(model, *first, 9, 8, 8);
  const auto second = model.cache("fp16");
  auto reader = cache::StateReader::open(state).value();
  ASSERT_TRUE(second->restore(reader).ok());
  EXPECT_EQ(feed(model, *second, 9, 8, 3), want);
  // A model whose shared blocks keep layers of their own has another cache.
  test::TinyModelSpec apart = toy_spec();
  apart.shares.clear();
  const test::LoadedTiny other(test::TinyModel(apart), with_toy());
  const auto third = other.cache("fp16");
  auto again = cache::StateReader::open(state).value();
  const Status status = third->restore(again);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()), "the state has 3 layers, the cache 5");
}

TEST(ToyModel, IsNobodysBusinessElse) {
  const std::vector<std::byte> bytes = test::TinyModel(toy_spec()).bytes();
  LoadOptions load;
  load.engine = test::cpu_engine();
  const Status status = load_model(gguf::GgufFile::parse(bytes).value(), load).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_STREQ(status.message(), "architecture \"toy\" is not known");
}

}  // namespace
}  // namespace gen::model
