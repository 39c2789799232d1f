// SPDX-License-Identifier: Apache-2.0
// Proves what keeps a token cheap: a greedy choice allocates nothing and writes nothing, a warm
// chain allocates nothing at all, and finding peaks block by block equals looking at all of a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "sampling/chain.h"
#include "sampling/dry.h"
#include "sampling/naive_sampling.h"
#include "sampling/row_peaks.h"
#include "support/counting_new.h"

namespace gen::sampling {
namespace {

TEST(FastPath, GreedyAllocatesAndWritesNothing) {
  SamplingParams params;
  params.temperature = 0.0;
  const std::vector<float> row = random_row(5000, 3);
  std::vector<float> logits = row;
  Chain chain(params);
  const size_t before = test::news;
  const auto choice = chain.sample(logits, {}, 0, 0);
  EXPECT_EQ(test::news - before, 0U);
  EXPECT_EQ(logits, row);
  EXPECT_EQ(choice.value().token, std::max_element(row.begin(), row.end()) - row.begin());
}

// Stages that act on draws only are not asked, whatever they are set to.
TEST(FastPath, GreedyIsGreedyBesideStagesOfDraws) {
  SamplingParams params;
  params.temperature = 0.0;
  params.top_n_sigma = 1.0;
  params.xtc_probability = 1.0;
  params.xtc_threshold = 0.0;
  params.mirostat_tau = 3.0;
  const std::vector<float> row = random_row(5000, 3);
  std::vector<float> logits = row;
  Chain chain(params);
  EXPECT_EQ(chain.short_row(false, false).k, 1);
  const size_t before = test::news;
  const auto choice = chain.sample(logits, {}, 0, 0);
  EXPECT_EQ(test::news - before, 0U);
  EXPECT_EQ(logits, row);
  EXPECT_EQ(choice.value().token, std::max_element(row.begin(), row.end()) - row.begin());
}

TEST(FastPath, AWarmChainAllocatesNothing) {
  SamplingParams params;
  params.top_k = 40;
  params.typical_p = 0.95;
  params.top_p = 0.9;
  params.repetition_penalty = 1.1;
  params.frequency_penalty = 0.1;
  params.logprobs = 3;
  params.top_n_sigma = 3.0;
  params.xtc_probability = 0.5;
  params.mirostat_tau = 4.0;
  params.dry_multiplier = 0.8;
  ASSERT_TRUE(params.set_logit_bias(7, 1.0F).ok());
  const std::vector<float> row = random_row(5000, 3);
  const std::vector<uint32_t> bits(157, 0xFFFFFFF7U);
  const TokenMask mask{bits};
  const std::vector<int32_t> said{1, 2, 3, 2, 4000, 1, 2, 3};
  const std::vector<int32_t> barred{9, 10};
  Dry dry;
  std::vector<float> logits = row;
  Chain chain(params);
  const auto sample = [&](uint64_t step) {
    const auto penalties = dry.find(said, 5, params, row.size());
    EXPECT_EQ(penalties.size(), 1U);
    return chain.sample(logits, said, step, 0, &mask, {penalties, barred}).ok();
  };
  ASSERT_TRUE(sample(0));
  for (uint64_t step = 1; step < 5; ++step) {
    logits = row;
    const size_t before = test::news;
    ASSERT_TRUE(sample(step));
    EXPECT_EQ(test::news - before, 0U);
  }
}

TEST(RowPeaks, EqualLookingAtAllOfTheRow) {
  for (const size_t size : {1U, 5U, 127U, 128U, 129U, 700U, 4099U, 20000U}) {
    for (uint64_t round = 0; round < 12; ++round) {
      std::vector<float> row = random_row(size, size + round, 12.0, round % 2 == 0 ? 40 : 0);
      RowPeaks peaks;
      std::vector<float> scratch;
      ASSERT_EQ(peaks.read(row), size);
      for (uint64_t i = 0; i < round; ++i) {  // some are changed afterwards
        const auto at =
            static_cast<size_t>(uniform_double(round, size, i) * static_cast<double>(size));
        row[at] = static_cast<float>(uniform_double(round, size, 100 + i) * 14.0 - 8.0);
        peaks.touch(at);
      }
      peaks.refresh(row);
      std::vector<float> sorted = row;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      const auto first = std::find(row.begin(), row.end(), sorted[0]) - row.begin();
      ASSERT_EQ(peaks.max(), sorted[0]);
      ASSERT_EQ(peaks.first_index_of(row, sorted[0]), static_cast<size_t>(first));
      float max = 0.0F;
      size_t bad = 0;
      ASSERT_EQ(argmax(row, &max, &bad), static_cast<size_t>(first));
      ASSERT_EQ(max, sorted[0]);
      ASSERT_EQ(bad, size);
      for (const size_t k : {1U, 2U, 3U, 10U, 39U, 100U, 20000U}) {
        if (k > size) continue;
        const float bar = peaks.kth_largest(row, k, &scratch);
        ASSERT_EQ(bar, sorted[k - 1]) << size << ", k " << k;
        std::vector<Candidate> found;
        peaks.collect(row, bar, &found);
        size_t at = 0;
        for (size_t i = 0; i < size; ++i) {
          if (row[i] < bar || row[i] == -kInf) continue;
          ASSERT_LT(at, found.size());
          ASSERT_EQ(found[at].token, static_cast<int32_t>(i));
          ASSERT_EQ(found[at++].logit, row[i]);
        }
        ASSERT_EQ(at, found.size());
      }
    }
  }
}

// In the plain path, in the one that reads peaks, and whatever bias the token has.
TEST(FastPath, ABadLogitIsFoundAtEveryPlace) {
  for (const size_t size : {1U, 16U, 128U, 131U, 300U}) {
    for (size_t at = 0; at < size; ++at) {
      for (const float value : {std::nanf(""), -std::nanf(""), kInf}) {
        for (const double temperature : {0.0, 1.0}) {
          SamplingParams params;
          params.temperature = temperature;
          if (at % 2 == 0) {
            ASSERT_TRUE(params.set_logit_bias(static_cast<int32_t>(at), -kInf).ok());
          }
          Chain chain(params);
          std::vector<float> logits(size, -1.0F);
          logits[at] = value;
          if (at + 1 < size) logits[size - 1] = kInf;  // the first is named
          const auto choice = chain.sample(logits, {}, 0, 41);
          ASSERT_EQ(choice.status().code(), Code::kModel);
          const std::string expected = "row 41, token " + std::to_string(at) + ": logit is " +
                                       (value == kInf ? "+inf" : "nan");
          ASSERT_EQ(choice.status().message(), expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace gen::sampling
