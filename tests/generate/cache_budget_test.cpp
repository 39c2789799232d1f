// SPDX-License-Identifier: Apache-2.0
// Proves that what sessions may take is all they take, at every moment, whatever is asked of them:
// memory by what an allocator counted, cells of lanes by the store. What is generated is always
// what contiguous caches give.
#include <gtest/gtest.h>

#include <atomic>

#include "cache/sequence/lane_store.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/tiered_cache.h"
#include "engine/memory/host_memory.h"
#include "generate/batch_run.h"
#include "prefix_world.h"
#include "support/counting_allocator.h"
#include "support/failing_file_ops.h"

namespace gen::generate {
namespace {

using test::CountingAllocator;

/// A llama of which every other layer sees five positions.
Status read_windowed(const model::arch::DenseStyle& style, model::KeyReader& keys,
                     model::HParams* h) {
  GEN_TRY(model::arch::read_dense_decoder(style, keys, h));
  for (size_t i = 0; i < h->layers.size(); i += 2) h->layers[i].attention.window = 5;
  return {};
}
const model::arch::Architecture kWindowedRow = {"llama", model::arch::kLlama.style, read_windowed};
constexpr const model::arch::Architecture* kWindowed[] = {&kWindowedRow};

struct World {
  World() : tiny(test::TinyModel(spec()), windowed()) {
    shapes.assign(tiny.model().layer_shapes().begin(), tiny.model().layer_shapes().end());
  }
  static test::TinyEngineOptions windowed() {
    test::TinyEngineOptions options;
    options.architectures = kWindowed;
    return options;
  }
  static test::TinyModelSpec spec() {
    test::TinyModelSpec made = PrefixWorld::spec(1);
    made.context = 1200;
    return made;
  }
  std::shared_ptr<const Generator> generator(const CacheFactory& factory, int32_t chunk = 512) {
    GeneratorOptions options;
    options.prefill_chunk = chunk;
    options.cache_factory = factory;
    auto model = std::make_shared<WatchedModel>(tiny.model());
    return Generator::create(std::move(model), nullptr, options).value();
  }
  std::shared_ptr<const Generator> plain() {
    return generator([this](std::span<const cache::LayerShape>, int32_t capacity) {
      return cache::make_cache("fp32", shapes, capacity, engine::system_memory());
    });
  }

  test::LoadedTiny tiny;
  std::vector<cache::LayerShape> shapes;
};

TEST(CacheBudget, ALongPromptStaysWithinATieredCachesMemory) {
  World world;
  test::FailingFiles files;
  CountingAllocator allocator;
  cache::TieredCacheOptions tiers;
  tiers.block_size = 16;
  tiers.files = &files;
  // The least that is allowed: what one byte less is refused for.
  const auto possible = [&](size_t bytes) {
    tiers.hot_bytes = bytes;
    return cache::make_tiered_cache(tiers, world.shapes, 1200, allocator).ok();
  };
  size_t least = 1;
  while (!possible(least)) least *= 2;
  for (size_t step = least / 4; step > 0; step /= 2) least -= possible(least - step) ? step : 0;
  tiers.hot_bytes = least;
  const Tokens prompt = text_of(3, 1000);
  const auto tiered = world.generator([&](std::span<const cache::LayerShape>, int32_t capacity) {
    return cache::make_tiered_cache(tiers, world.shapes, capacity, allocator);
  });
  const auto session = tiered->new_session().value();
  const Said said = say(*session, prompt, 20);
  EXPECT_TRUE(said.status.ok()) << said.status.message();
  EXPECT_LE(allocator.peak_bytes, tiers.hot_bytes);
  EXPECT_GT(allocator.peak_bytes, tiers.hot_bytes / 2);
  EXPECT_EQ(said, say(*world.plain()->new_session().value(), prompt, 20));
  // Back into what is in the file, and on again.
  ASSERT_TRUE(session->truncate(205).ok());
  ASSERT_TRUE(session->append({.text = {}, .tokens = text_of(4, 700)}).ok());
  EXPECT_LE(allocator.peak_bytes, tiers.hot_bytes);
}

// A prompt is longer than the rows that lanes may plan at once.
TEST(CacheBudget, LanesKeepToTheirCellsAndQuotas) {
  World world;
  CountingAllocator allocator;
  cache::LaneLimits limits;
  limits.max_sequences = 6;
  limits.capacity = 1200;
  limits.max_batch = 64;
  limits.quota = 80;
  auto store = cache::LaneStore::create("fp32", world.shapes, limits, allocator).value();
  const size_t taken = allocator.live_bytes;
  std::atomic<int32_t> number = 0;
  const auto lanes = world.generator(
      [&](std::span<const cache::LayerShape>, int32_t) { return store->lane(number++); }, 8);
  const auto plain = world.plain();
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < 6; ++i) prompts.push_back(text_of(i, i == 4 ? 70 : 60));
  std::vector<BatchRequest> requests(prompts.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt.tokens = prompts[i];
    requests[i].params = params_of(15);
  }
  const auto results = run_batch(*lanes, requests, nullptr, nullptr);
  for (size_t i = 0; i < results.size(); ++i) {
    const bool fits = prompts[i].size() + 15 <= 80;
    EXPECT_EQ(results[i].status.code(), fits ? Code::kOk : Code::kCacheFull)
        << results[i].status.message();
    const Tokens all = say(*plain->new_session().value(), prompts[i], 15).tokens;
    EXPECT_EQ(results[i].tokens, first(all, fits ? 15 : 11));
  }
  EXPECT_EQ(allocator.peak_bytes, taken);
  for (size_t g = 0; g < store->groups(); ++g) EXPECT_EQ(store->free_cells(g), store->cells(g));
}

}  // namespace
}  // namespace gen::generate
