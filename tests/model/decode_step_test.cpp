// SPDX-License-Identifier: Apache-2.0
// Proves that on the CPU engine a steady decode step takes no memory at all, for any cache and
// number of threads: neither through the engine's allocator nor through operator new.
#include <gtest/gtest.h>

#include <string>

#include "support/counting_allocator.h"
#include "support/counting_new.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

TEST(DecodeStep, TakesNoMemory) {
  for (const DType type : {DType::kF32, DType::kQ8_0}) {
    for (const int32_t threads : {1, 2}) {
      for (const char* kind : {"fp32", "fp16"}) {
        test::TinyModelSpec spec;
        spec.type = type;
        test::CountingAllocator allocator;
        test::TinyEngineOptions options;
        options.threads = threads;
        options.allocator = &allocator;
        const test::LoadedTiny loaded(test::TinyModel(spec), options);
        const auto cache = loaded.cache(kind);
        loaded.feed(*cache, std::vector<int32_t>{1, 2, 3, 4, 5});
        test::OwnedBatch batch;
        ASSERT_TRUE(batch.add(*cache, std::vector<int32_t>{6}).ok());
        batch.finish(loaded.vocab());
        // A session's step: plan, run, commit.
        const auto step = [&] {
          auto plan = cache->plan(1);
          if (!plan.ok()) return false;
          batch.sequences[0].plan = *plan;
          batch.positions[0] = plan->start;
          if (!loaded.model().forward(batch.batch).ok()) return false;
          cache->commit(*plan);
          return true;
        };
        ASSERT_TRUE(step());
        const size_t news = test::news;
        const size_t calls = allocator.calls;
        bool all = true;
        for (int i = 0; i < 20; ++i) all = step() && all;
        EXPECT_EQ(test::news, news) << kind << ", " << threads << " threads";
        EXPECT_EQ(allocator.calls, calls) << kind << ", " << threads << " threads";
        EXPECT_TRUE(all);
        EXPECT_EQ(cache->length(), 26);
      }
    }
  }
}

}  // namespace
}  // namespace gen::model
