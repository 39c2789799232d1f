// SPDX-License-Identifier: Apache-2.0
// What a row is asked, and which of its answers a token is picked from: the best tokens where they
// decide it under the mask that was made, all logits where they do not, and then the best again.
#include "generate/loop/row_result.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "generate/request/call_params.h"

namespace gen::generate {
namespace {

constexpr int32_t kVocab = 300;

class RowResults : public testing::Test {
 protected:
  RowResults() {
    traits_.vocab_size = kVocab;
    traits_.max_best = 128;
    traits_.rules_best = true;
    params_.sampling.temperature = 0.0;
  }

  /// Asks for `rows` rows and answers each: token 10 * row + i is the i-th best.
  graph::RowQuery answered(RowResult* row, TokenPicker* picker, int32_t rows) {
    graph::RowQuery query;
    EXPECT_TRUE(row->ask(picker, {held_, said_}, nullptr, {}, &query).ok());
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t i = 0; query.best.tokens != nullptr && i < query.best.k; ++i) {
        const auto at = static_cast<size_t>(r * query.best.k + i);
        query.best.tokens[at] = 10 * r + i;
        query.best.logits[at] = static_cast<float>(100 - i);
      }
      for (int32_t t = 0; query.logits != nullptr && t < kVocab; ++t) {
        query.logits[r * kVocab + t] = t == 200 + r ? 1.0F : 0.0F;
      }
    }
    return query;
  }

  model::ModelTraits traits_;
  CallParams params_;
  std::vector<int32_t> held_ = {1, 2};
  std::vector<int32_t> said_;
};

TEST_F(RowResults, AreTheBestOnlyUnderTheMaskThatWasMade) {
  TokenPicker picker(params_, nullptr);
  RowResult row(traits_, kVocab);
  row.begin(picker, true, false);
  row.make_room(1);
  ASSERT_TRUE(row.is_short());
  const std::vector<uint32_t> bits((kVocab + 31) / 32, ~uint32_t{0});
  const sampling::TokenMask mask{bits};
  TokenPicker::At at{held_, said_};
  at.mask = &mask;

  EXPECT_NE(answered(&row, &picker, 1).best.tokens, nullptr);
  EXPECT_EQ(row.pick(&picker, 0, at).value().token, -1);  // the mask came late
  row.note_mask(true);
  EXPECT_EQ(row.pick(&picker, 0, at).value().token, 0);
  answered(&row, &picker, 1);  // the next row's mask is another
  EXPECT_EQ(row.pick(&picker, 0, at).value().token, -1);

  row.ask_again();
  EXPECT_TRUE(row.is_whole_again());
  const graph::RowQuery whole = answered(&row, &picker, 1);
  EXPECT_NE(whole.logits, nullptr);
  EXPECT_EQ(whole.best.tokens, nullptr);
  EXPECT_TRUE(whole.extras.empty());
  EXPECT_EQ(row.pick(&picker, 0, at).value().token, 200);
  row.taken();
  EXPECT_TRUE(row.is_short());
  EXPECT_NE(answered(&row, &picker, 1).best.tokens, nullptr);
}

TEST_F(RowResults, OfAStepAreEachTheirOwn) {
  TokenPicker picker(params_, nullptr);
  for (const int32_t max_best : {128, 0}) {
    traits_.max_best = max_best;
    RowResult row(traits_, kVocab);
    row.begin(picker, false, false);
    row.make_room(3);
    EXPECT_EQ(row.is_short(), max_best > 0);
    EXPECT_EQ(row.is_best_alone(), max_best > 0);
    answered(&row, &picker, 3);
    for (int32_t r = 0; r < 3; ++r) {
      const auto choice = row.pick(&picker, r, {held_, said_});
      EXPECT_EQ(choice.value().token, max_best > 0 ? 10 * r : 200 + r);
    }
  }
}

TEST_F(RowResults, WithMasksAndGuessesAreAllLogits) {
  TokenPicker picker(params_, nullptr);
  RowResult row(traits_, kVocab);
  row.begin(picker, true, true);
  row.make_room(2);
  EXPECT_FALSE(row.is_short());
  EXPECT_NE(answered(&row, &picker, 2).logits, nullptr);
}

TEST(RowQuery, BehindRowsItsPlacesAreFurther) {
  std::vector<float> logits(100);
  std::vector<int32_t> tokens(100);
  graph::RowQuery query;
  EXPECT_EQ(query.behind(3, 20).wants(), graph::kWantsNothing);
  query.logits = logits.data();
  EXPECT_EQ(query.behind(3, 20).logits, logits.data() + 60);
  query = {};
  query.best.k = 4;
  query.best.tokens = tokens.data();
  query.best.logits = logits.data();
  EXPECT_EQ(query.behind(3, 20).best.tokens, tokens.data() + 12);
  EXPECT_EQ(query.behind(3, 20).best.logits, logits.data() + 12);
  EXPECT_EQ(query.behind(3, 20).wants(), graph::kWantsBest);
}

}  // namespace
}  // namespace gen::generate
