// SPDX-License-Identifier: Apache-2.0
// Proves run_embed: rows of the table by id, scaled, for every format, from lasting bytes in place
// and from a copy otherwise.
#include <gtest/gtest.h>

#include "engine/access.h"
#include "engine/linear_cases.h"

namespace gen::engine {
namespace {

TEST(Embed, RowsById) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                           DType::kQ4_K, DType::kQ6_K}) {
    const TestMatrix table(type, 11, 256, 1);
    const int32_t ids[] = {10, 0, 3, 3};
    for (const bool lasting : {false, true}) {
      const auto engine = make_engine(CpuLevel::kScalar, 2);
      WeightSource source = table.source();
      source.lasting = lasting;
      auto weight = prepare(*engine, WeightRole::kEmbedding, {source});
      EXPECT_EQ(weight->out_features(), 11);
      EXPECT_EQ(weight->in_features(), 256);
      EXPECT_EQ(weight->resident_bytes(), lasting ? 0 : source.data.size());
      EXPECT_EQ(weight->stream_bytes(), source.data.size() / 11);
      auto stream = std::move(engine->new_stream()).value();
      for (const float scale : {1.0F, 0.25F}) {
        std::vector<float> y(4 * 300, -1.0F);
        EmbedArgs args;
        args.weight = weight.get();
        args.ids = engine_ptr(std::data(ids));
        args.scale = scale;
        args.y = {engine_ptr(y.data()), 4, 256, 300};
        ASSERT_TRUE(engine->run(*stream, args).ok());
        for (size_t t = 0; t < 4; ++t) {
          for (size_t c = 0; c < 256; ++c) {
            ASSERT_EQ(y[t * 300 + c], table.values[static_cast<size_t>(ids[t]) * 256 + c] * scale);
          }
          ASSERT_EQ(y[t * 300 + 256], -1.0F);
        }
      }
    }
  }
}

TEST(Embed, ACopyOutlivesItsSource) {
  const auto engine = make_engine(CpuLevel::kScalar, 1);
  std::unique_ptr<Weight> weight;
  std::vector<float> values;
  {
    TestMatrix table(DType::kQ8_0, 3, 32, 1);
    weight = prepare(*engine, WeightRole::kEmbedding, {table.source()});
    values = table.values;
    std::fill(table.bytes.begin(), table.bytes.end(), std::byte{0});
  }
  const int32_t id = 2;
  std::vector<float> y(32);
  EmbedArgs args;
  args.weight = weight.get();
  args.ids = engine_ptr(&id);
  args.y = {engine_ptr(y.data()), 1, 32, 32};
  auto stream = std::move(engine->new_stream()).value();
  ASSERT_TRUE(engine->run(*stream, args).ok());
  EXPECT_TRUE(same_bits(y, std::vector<float>(values.begin() + 64, values.end())));
}

}  // namespace
}  // namespace gen::engine
