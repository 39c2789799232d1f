// SPDX-License-Identifier: Apache-2.0
// Proves that plans run on the CUDA engine: over caches of all kinds in its memory, with trees,
// taps and given embeddings, logits are those of the CPU engine within the bound of golden files,
// the best token is the same wherever the CPU's two best differ by more than twice it, and a row's
// bits do not depend on what runs beside it or on how a prompt is cut.
#include "engine/memory/host_memory.h"

#include <algorithm>

#include "cuda/engine/op_bench.h"
#include "support/plan_side.h"
#include "support/sliced_graph.h"

namespace gen::graph {
namespace {

constexpr double kGolden =
    1e-3;  // of probabilities, see tests/golden; logits here are held to less

/// With caches in the engine's own memory.
class Side : public test::PlanSide {
 public:
  Side(const test::TinyGraph& tiny, const std::shared_ptr<engine::Engine>& engine)
      : PlanSide(tiny, engine, engine->memory()) {}
};

/// Values of both engines within `bound`; of rows of `vocab` also the best token.
void expect_near(const std::vector<float>& want, const std::vector<float>& got, int64_t vocab,
                 float bound) {
  ASSERT_FALSE(want.empty());
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(want[i], got[i], bound) << i;
  for (size_t row = 0; vocab > 0 && row < want.size() / static_cast<size_t>(vocab); ++row) {
    const auto* const from = want.data() + row * static_cast<size_t>(vocab);
    const auto* const other = got.data() + row * static_cast<size_t>(vocab);
    std::vector<float> sorted(from, from + vocab);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    if (sorted[0] - sorted[1] <= 2 * bound) continue;
    EXPECT_EQ(std::max_element(from, from + vocab) - from,
              std::max_element(other, other + vocab) - other)
        << "row " << row;
  }
}

/// Sums of a few dozen terms in another order; keys and values that fall on a level beside the
/// other engine's move results by what a level is worth.
constexpr float kBound = 2e-5F;
constexpr float kCodeBound = 5e-2F;
static_assert(kBound < kGolden);

TEST(CudaPlan, SequencesOfPlainCachesTogether) {
  const test::TinyGraph tiny;
  const auto scenario = [&](const std::shared_ptr<engine::Engine>& engine) {
    Side side(tiny, engine);
    std::vector<std::unique_ptr<cache::KvCache>> caches;
    caches.push_back(side.cache("fp32"));
    caches.push_back(side.paged("fp32"));
    caches.push_back(side.lane("fp32"));
    caches.push_back(side.tiered("fp32"));
    return test::sequences_together(side, caches);
  };
  expect_near(scenario(test::cpu_engine()), scenario(test::cuda_engine()), 30, kBound);
}

TEST(CudaPlan, EveryKindOfCache) {
  const test::TinyGraph tiny;
  Side near(tiny, test::cpu_engine());
  Side far(tiny, test::cuda_engine());
  auto near_caches = near.every_kind();
  auto far_caches = far.every_kind();
  for (size_t i = 0; i < near_caches.size(); ++i) {
    SCOPED_TRACE(i);
    for (const auto& tokens :
         {std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8}, std::vector<int32_t>{9, 10, 11, 12},
          std::vector<int32_t>{13}, std::vector<int32_t>{14, 15}}) {
      const auto want = near.feed(*near_caches[i], tokens);
      const auto got = far.feed(*far_caches[i], tokens);
      expect_near(want, got, near.vocab(), i < 4 ? kBound : kCodeBound);
    }
  }
}

TEST(CudaPlan, TreesTapsAndEmbeddings) {
  const test::TinyGraph tiny;
  const auto scenario = [&](const std::shared_ptr<engine::Engine>& engine) {
    Side side(tiny, engine);
    return test::trees_taps_and_embeddings(side);
  };
  expect_near(scenario(test::cpu_engine()), scenario(test::cuda_engine()), 0, kBound);
}

/// Products of float weights read the rows that others write.
TEST(CudaPlan, FloatRowsAreNotPacked) {
  const test::TinyGraph tiny;
  const auto packs = [&](const std::shared_ptr<engine::Engine>& engine) {
    CompileOptions options;
    options.max_seq_len = 64;
    const auto plan = compile(tiny.graph(), engine, options).value();
    const auto instructions = plan->instructions();
    return std::count_if(instructions.begin(), instructions.end(),
                         [](const Instruction& each) { return each.op == engine::Op::kPack; });
  };
  EXPECT_EQ(packs(test::cuda_engine()), 0);
  EXPECT_GT(packs(test::cpu_engine()), 0);
}

/// What a product makes and only products read is packed where it lies, and in bfloat16 where they
/// want that; not so where something else reads it, or where it is the sum with a residual.
TEST(CudaPlan, WhatOnlyProductsReadIsMadeAsTheyWantIt) {
  enum class Reader { kProducts, kTap, kResidual };
  for (const DType type : {DType::kBF16, DType::kQ8_0}) {
    for (const Reader reader : {Reader::kProducts, Reader::kTap, Reader::kResidual}) {
      SCOPED_TRACE(testing::Message() << dtype_name(type) << static_cast<int>(reader));
      const std::vector<float> values(32 * 32, 0.5F);
      const DTypeInfo& info = *dtype_info(type);
      std::vector<std::byte> bytes(values.size() / info.block_elements * info.block_bytes);
      quant::find_format(type)->encode(values.data(), bytes.data(), 32 * 32);
      const engine::WeightSource w = {"w", type, 32, 32, bytes, true};
      GraphBuilder builder;
      const ValueId x = builder.embed(w, 1.0F);
      ValueId a = builder.linear(x, w, {}, -1);
      if (reader == Reader::kTap) builder.tap(0, a);
      if (reader == Reader::kResidual) a = builder.add(a, x);
      builder.logits(builder.linear(builder.select_rows(builder.linear(a, w, {}, -1)), w, {}, -1));
      auto graph = builder.finish();
      ASSERT_TRUE(graph.ok()) << graph.status().message();
      CompileOptions options;
      options.max_seq_len = 64;
      auto made = compile(graph.value(), test::cuda_engine(), options);
      ASSERT_TRUE(made.ok()) << made.status().message();
      const auto& plan = *made.value();
      std::vector<const Instruction*> products;
      int32_t packs = 0;
      int32_t in_place = 0;
      for (const Instruction& each : plan.instructions()) {
        if (each.op == engine::Op::kLinear) products.push_back(&each);
        if (each.op != engine::Op::kPack) continue;
        ++packs;
        if (each.x[0].value == each.packed.value) ++in_place;
      }
      ASSERT_EQ(products.size(), 3U);
      const bool only = reader == Reader::kProducts;
      const bool quantised = type == DType::kQ8_0;
      const int64_t from = plan.values()[static_cast<size_t>(products[0]->y.value)].bf16_rows;
      EXPECT_EQ(from, !only ? 0 : quantised ? 512 : 9);
      EXPECT_EQ(packs, quantised ? 3 : 0);  // of x, of a, and of the next one
      EXPECT_EQ(in_place, !quantised ? 0 : only ? 2 : 1);
    }
  }
}

TEST(CudaPlan, RowsBesideAndCutsDoNotShow) {
  const test::TinyGraph tiny;
  Side side(tiny, test::cuda_engine());
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
  for (const char* kind : {"fp32", "fp16", "fp8", "q4", "q3"}) {
    SCOPED_TRACE(kind);
    const auto whole = side.cache(kind);
    const auto want = side.feed(*whole, tokens);
    const auto parts = side.paged(kind);
    const auto other = side.lane(kind);
    std::vector<float> got;
    for (size_t at = 0, n = 1; at < tokens.size(); at += n, n = n % 5 + 1) {
      n = std::min(n, tokens.size() - at);
      test::OwnedBatch batch;
      EXPECT_TRUE(batch.add(*other, std::vector<int32_t>{3, 2, 1}).ok());
      EXPECT_TRUE(batch.add(*parts, std::span(tokens).subspan(at, n)).ok());
      const auto results = side.run(batch);
      got.insert(got.end(), results.begin() + 3 * side.vocab(), results.end());
    }
    EXPECT_TRUE(test::same_bits(got, want));
  }
}

// Columns where they lie, tables that positions and nothing name, and means.
TEST(CudaPlan, SlicesEmbeddingsAndMeans) {
  for (const bool means : {false, true}) {
    const test::SlicedGraph sliced(true, means);
    const test::SlicedGraph copied(false, means);
    const auto of = [](const Graph& graph, const std::shared_ptr<engine::Engine>& engine) {
      CompileOptions options;
      options.max_seq_len = test::SlicedGraph::kContext;
      return test::run_sliced(*compile(graph, engine, options).value());
    };
    const auto got = of(sliced.graph(), test::cuda_engine());
    expect_near(of(sliced.graph(), test::cpu_engine()), got, 0, kBound);
    EXPECT_TRUE(test::same_bits(got, of(copied.graph(), test::cuda_engine())));
  }
}

TEST(CudaPlan, MemoryComesBack) {
  const test::TinyGraph tiny;
  const auto engine = test::cuda_engine();
  Side side(tiny, engine);
  for (int32_t round = 0; round < 2; ++round) {
    const auto cache = side.paged("q4");
    for (int32_t i = 0; i < 12; ++i) side.feed(*cache, {i});
    EXPECT_TRUE(cache->truncate(7).ok());
    side.feed(*cache, {1, 2});
  }
}

}  // namespace
}  // namespace gen::graph
