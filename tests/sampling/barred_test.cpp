// SPDX-License-Identifier: Apache-2.0
// Proves that barred tokens are not drawn while anything else can be, and are what they were where
// nothing else can.
#include "sampling/barred.h"

#include <gtest/gtest.h>

#include "sampling/chain.h"
#include "sampling/naive_sampling.h"

namespace gen::sampling {
namespace {

using Row = std::vector<float>;

Row after(Row row, const std::vector<int32_t>& barred, size_t* edited = nullptr) {
  RowPeaks peaks;
  EXPECT_EQ(peaks.read(row), row.size());
  std::vector<LogitEdit> edits{{0, 7.0F}};
  apply_barred(barred, row, &peaks, &edits);
  EXPECT_EQ(edits[0].before, 7.0F);
  EXPECT_EQ(peaks.max(), *std::max_element(row.begin(), row.end()));
  if (edited != nullptr) *edited = edits.size() - 1;
  return row;
}

TEST(Barred, AreOutWhileThereIsAnother) {
  size_t edited = 0;
  EXPECT_EQ(after({1, 5, 2}, {1}, &edited), (Row{1, -kInf, 2}));
  EXPECT_EQ(edited, 1U);
  EXPECT_EQ(after({1, 5, -kInf}, {1, 1, 2}), (Row{1, -kInf, -kInf}));
  EXPECT_EQ(after({1, 5, 2}, {-1, 3, 1000000}, &edited), (Row{1, 5, 2}));
  EXPECT_EQ(edited, 0U);
  EXPECT_EQ(after({-kInf, 5, 2}, {1, 2, 1}, &edited), (Row{-kInf, 5, 2}));  // nothing else
  EXPECT_EQ(edited, 0U);
  EXPECT_EQ(after({3}, {0}), (Row{3}));
  Row wide(1000, -kInf);
  wide[700] = 2.0F;
  wide[3] = 1.0F;
  EXPECT_EQ(after(wide, {700})[3], 1.0F);
  EXPECT_EQ(after(wide, {700})[700], -kInf);
  EXPECT_EQ(after(wide, {3, 700}), wide);
}

TEST(Barred, InTheChain) {
  SamplingParams params;
  params.temperature = 0.0;
  const std::vector<int32_t> barred{1, 2};
  const Further further{.penalties = {}, .barred = barred};
  const auto token = [&](Row row, const TokenMask* mask = nullptr) {
    Chain chain(params);
    return chain.sample(row, {}, 0, 0, mask, further).value().token;
  };
  EXPECT_EQ(token({1, 5, 4, 0}), 0);
  EXPECT_EQ(token({-kInf, 5, 6, -kInf}), 2);
  const std::vector<uint32_t> bits{6U};
  const TokenMask mask{bits};
  EXPECT_EQ(token({1, 5, 4, 0}, &mask), 1);  // a grammar at its end
  params.logit_bias = {{0, -kInf}, {3, -kInf}};
  EXPECT_EQ(token({1, 5, 4, 0}), 1);
  params.logit_bias = {{0, -kInf}};
  EXPECT_EQ(token({1, 5, 4, 0}), 3);
  // Log-probabilities know of none of it, whichever way it went.
  params.logprobs = 0;
  for (const float other : {0.0F, -kInf}) {
    params.logit_bias.clear();
    Chain chain(params);
    Row row{other, 5, 4, other};
    const auto choice = chain.sample(row, {}, 0, 0, nullptr, further);
    const double e = other == -kInf ? 0.0 : 2.0;
    const double sum = std::log(std::exp(5.0) + std::exp(4.0) + e);
    EXPECT_EQ(choice.value().token, other == -kInf ? 1 : 0);
    EXPECT_NEAR(static_cast<double>(choice.value().logprob), (other == -kInf ? 5.0 : 0.0) - sum,
                1e-6);
  }
}

}  // namespace
}  // namespace gen::sampling
