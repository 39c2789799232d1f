// SPDX-License-Identifier: Apache-2.0
// Proves that a model's rows can answer with hidden states in place of logits: with the weights of
// the model and no copy of them, the states that its own head reads, to the bit however rows come;
// and that a mean is that of the sequence's rows, whatever is beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "model/plan_model.h"
#include "support/drift_model.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

using graph::RowEnd;
using Floats = std::vector<float>;

const std::vector<int32_t> kText = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38};
constexpr int32_t kHidden = 64;

std::unique_ptr<cache::KvCache> cache_of(const Model& model) {
  return cache::make_cache("fp32", model.layer_shapes(), 64, engine::system_memory()).value();
}

/// What the text's rows answer with, in steps of n.
Floats run(const Model& model, size_t n, int64_t width = kHidden) {
  const auto cache = cache_of(model);
  const auto state = model.new_sequence_state().value();
  Floats all;
  for (size_t at = 0; at < kText.size(); at += n) {
    test::OwnedBatch batch;
    const auto part = std::span(kText).subspan(at, std::min(n, kText.size() - at));
    EXPECT_TRUE(batch.add(*cache, part, true, state.get()).ok());
    const Status status = model.forward(batch.finish(width));
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    const Floats results = batch.results(width);
    all.insert(all.end(), results.begin(), results.end());
  }
  return all;
}

/// Means of the first rows, of more and more of them.
Floats means(const Floats& rows) {
  Floats made;
  for (size_t t = 0; t < kText.size(); ++t) {
    for (size_t c = 0; c < kHidden; ++c) {
      double sum = 0.0;
      for (size_t i = 0; i <= t; ++i) sum += static_cast<double>(rows[i * kHidden + c]);
      made.push_back(static_cast<float>(sum / static_cast<double>(t + 1)));
    }
  }
  return made;
}

// The head of a file is a product, so what it reads can be seen through a head of ones and zeros.
Floats through_the_head(test::TinyModel& tiny, const test::TinyEngineOptions& options) {
  auto image = tiny.writer().build();
  Floats one(static_cast<size_t>(kHidden) * kHidden, 0.0F);
  for (size_t i = 0; i < kHidden; ++i) one[i * (kHidden + 1)] = 1.0F;
  std::memcpy(image.bytes.data() + image.at("output.weight.data"), one.data(), one.size() * 4);
  const test::LoadedTiny seen(std::move(image.bytes), options);
  return run(seen.model(), 1, seen.vocab());
}

class HiddenRows : public testing::TestWithParam<const char*> {
 protected:
  HiddenRows() {
    if (std::string(GetParam()) == "drift") {
      spec = test::drift_spec();
      options = test::with_drift();
    }
    spec.architecture = GetParam();
    spec.vocab = kHidden;
    spec.logit_cap = 0.0F;
    spec.logit_scale = 1.0F;
  }
  test::TinyModelSpec spec;
  test::TinyEngineOptions options;
};

TEST_P(HiddenRows, AreWhatTheHeadReads) {
  test::TinyModel tiny(spec);
  const Floats want = through_the_head(tiny, options);
  for (const int32_t threads : {1, 3}) {
    options.threads = threads;
    auto loaded = std::make_unique<test::LoadedTiny>(tiny, options);
    const size_t weights = loaded->model().memory("weights").value();
    const auto hidden = loaded->model().hidden_rows(RowEnd::kHidden).value();
    const auto mean = loaded->model().hidden_rows(RowEnd::kMean).value();
    EXPECT_LT(hidden->memory("weights").value(), weights / 5);
    EXPECT_EQ(hidden->traits().result, kHidden);
    EXPECT_EQ(loaded->model().traits().result, 0);
    const auto bytes = loaded->release();  // models live on without it
    for (const size_t n : {size_t{1}, size_t{4}, kText.size()}) EXPECT_EQ(run(*hidden, n), want);
    EXPECT_EQ(run(*mean, kText.size()), means(want));
  }
}

INSTANTIATE_TEST_SUITE_P(All, HiddenRows,
                         testing::Values("llama", "qwen3", "gemma3", "phi3", "olmo2", "drift",
                                         "starcoder2", "nemotron", "stablelm", "qwen3moe"));

class Rows : public testing::Test {
 protected:
  const test::TinyModel tiny{test::TinyModelSpec()};
  const test::LoadedTiny loaded{tiny};
};

// Some rows want something, of sequences of several lengths, in one step.
TEST_F(Rows, AreThoseThatWantSomething) {
  for (const RowEnd end : {RowEnd::kHidden, RowEnd::kMean}) {
    const auto model = loaded.model().hidden_rows(end).value();
    const Floats alone = run(*model, kText.size());
    test::OwnedBatch batch;
    std::vector<std::unique_ptr<cache::KvCache>> caches;
    Floats want;
    for (size_t n = 1; n <= kText.size(); ++n) {
      caches.push_back(cache_of(*model));
      ASSERT_TRUE(batch.add(*caches.back(), std::span(kText).first(n), false).ok());
      want.insert(want.end(), alone.begin() + static_cast<ptrdiff_t>((n - 1) * kHidden),
                  alone.begin() + static_cast<ptrdiff_t>(n * kHidden));
    }
    ASSERT_TRUE(model->forward(batch.finish(kHidden)).ok());
    EXPECT_EQ(batch.results(kHidden), want);
  }
}

// The last norm is named and offered as a tap for all rows, and still only those that want logits
// go through it.
TEST_F(Rows, CostAModelWithLogitsNothing) {
  const auto& plan = static_cast<const PlanModel&>(loaded.model()).plan();
  size_t ends = 0;
  for (size_t i = 0; i + 2 < plan.instructions().size(); ++i) {
    const graph::Instruction& norm = plan.instructions()[i];
    const graph::Instruction& tap = plan.instructions()[i + 1];
    const graph::Instruction& head = plan.instructions()[i + 2];
    if (norm.op != graph::Op::kRmsNorm || head.op != graph::Op::kLinear) continue;
    if (head.y.cols != loaded.vocab()) continue;
    ++ends;
    EXPECT_TRUE(norm.selected);
    EXPECT_TRUE(tap.selected);
    EXPECT_EQ(tap.layer, graph::kNormedTap);
    EXPECT_EQ(tap.x[0].value, norm.y.value);
  }
  EXPECT_EQ(ends, 1U);
}

TEST_F(Rows, OfFewerLayers) {
  const auto whole = loaded.model().hidden_rows(RowEnd::kHidden).value();
  const auto cut = loaded.model().first_layers(1).value()->hidden_rows(RowEnd::kHidden).value();
  EXPECT_EQ(cut->traits().num_layers, 1);
  EXPECT_EQ(run(*cut, 4), run(*cut, 1));
  EXPECT_NE(run(*cut, 1), run(*whole, 1));
}

TEST_F(Rows, RefusalsNameWhatIsMissing) {
  const auto mean = loaded.model().hidden_rows(RowEnd::kMean).value();
  const auto cache = cache_of(*mean);
  test::OwnedBatch first;
  ASSERT_TRUE(first.add(*cache, std::span(kText).first(3)).ok());
  ASSERT_TRUE(mean->forward(first.finish(kHidden)).ok());
  first.commit();
  test::OwnedBatch second;
  ASSERT_TRUE(second.add(*cache, kText).ok());
  const Status status = mean->forward(second.finish(kHidden));
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_STREQ(status.message(),
               "sequence 0 has 3 rows before these: a mean is of rows that come in one step");
  // Rows that want nothing may come, so a cache can be filled.
  std::fill(second.wants.begin(), second.wants.end(), graph::kWantsNothing);
  EXPECT_TRUE(mean->forward(second.finish(kHidden)).ok());
  // There is nothing to choose a token of.
  test::OwnedBatch best;
  const auto other = cache_of(*mean);
  ASSERT_TRUE(best.add(*other, kText).ok());
  std::fill(best.wants.begin(), best.wants.end(), graph::kWantsBest);
  EXPECT_EQ(mean->forward(best.finish(kHidden)).code(), Code::kUnsupported);
  EXPECT_EQ(mean->traits().max_best, 0);
}

}  // namespace
}  // namespace gen::model
