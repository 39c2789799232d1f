// SPDX-License-Identifier: Apache-2.0
// Proves that kNormedTap gives the rows that hidden_rows() answers with, to the bit, whatever the
// rows of the batch want and however they come, beside taps of layers; and that no result depends
// on whether hidden states are asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/access.h"
#include "support/drift_model.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

using Floats = std::vector<float>;

constexpr int32_t kHidden = 64;
constexpr int32_t kVocab = 50;

std::vector<int32_t> text(size_t n) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < n; ++i) tokens.push_back(static_cast<int32_t>((7 * i * i + 3) % kVocab));
  return tokens;
}

/// What rows want, by their number in the batch.
struct Wanted {
  const char* name;
  uint8_t (*of)(size_t row);
};

const Wanted kWanted[] = {
    {"none", [](size_t) { return uint8_t{graph::kWantsNothing}; }},
    {"logits", [](size_t) { return uint8_t{graph::kWantsLogits}; }},
    {"best", [](size_t) { return uint8_t{graph::kWantsBest}; }},
    {"some", [](size_t row) { return static_cast<uint8_t>(row % 3 == 1 ? 1 : 0); }},
    {"the first", [](size_t row) { return static_cast<uint8_t>(row == 0 ? 1 : 0); }},
    {"some best", [](size_t row) { return static_cast<uint8_t>(row % 3 == 1 ? 2 : 0); }},
    {"either", [](size_t row) { return static_cast<uint8_t>(row % 2 == 1 ? 2 : 1); }},
    {"anything", [](size_t row) { return static_cast<uint8_t>(row * row % 3); }},
};

/// What a model answers, step after step.
struct Answers {
  Floats logits;
  std::vector<int32_t> best;
  Floats best_logits;
  Floats normed;
  Floats last;  // after the last layer
};

/// Two sequences, the second of which begins with `ahead` other tokens, in steps of n rows of each.
/// `taps`: 0 none, 1 in memory of the host, 2 in that of the engine.
Answers run(const test::LoadedTiny& loaded, const Model& model, size_t rows, size_t n,
            const Wanted& wanted, int32_t taps, int64_t width = kVocab) {
  Answers all;
  const std::vector<int32_t> tokens = text(rows);
  const auto one = loaded.cache();
  const auto two = loaded.cache();
  const auto one_state = model.new_sequence_state().value();
  const auto two_state = model.new_sequence_state().value();
  test::OwnedBatch ahead;
  EXPECT_TRUE(ahead.add(*two, text(3), false, two_state.get()).ok());
  EXPECT_TRUE(model.forward(ahead.finish(width)).ok());
  ahead.commit();
  for (size_t at = 0; at < rows; at += n) {
    const auto part = std::span(tokens).subspan(at, std::min(n, rows - at));
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*one, part, true, one_state.get()).ok());
    EXPECT_TRUE(batch.add(*two, part, true, two_state.get()).ok());
    for (size_t row = 0; row < batch.wants.size(); ++row) batch.wants[row] = wanted.of(row);
    batch.finish(width);
    const size_t n_best = batch.batch.wanting(graph::kWantsBest);
    std::vector<int32_t> best(n_best);
    Floats best_logits(n_best);
    batch.batch.best = {1, best.data(), best_logits.data(), n_best};
    Floats normed(batch.tokens.size() * kHidden);
    Floats last(normed.size());
    std::vector<graph::Tap> asked = {{graph::kNormedTap, normed.data()},
                                     {model.traits().num_layers, last.data()}};
    if (taps == 2) {
      asked = {{graph::kNormedTap, nullptr, engine::engine_ptr(normed.data())},
               {model.traits().num_layers, nullptr, engine::engine_ptr(last.data())}};
    }
    if (taps > 0) batch.batch.taps = asked;
    const Status status = model.forward(batch.batch);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    const size_t n_logits = batch.batch.wanting(graph::kWantsLogits);
    all.logits.insert(all.logits.end(), batch.logits.begin(),
                      batch.logits.begin() + static_cast<std::ptrdiff_t>(n_logits) * width);
    all.best.insert(all.best.end(), best.begin(), best.end());
    all.best_logits.insert(all.best_logits.end(), best_logits.begin(), best_logits.end());
    all.normed.insert(all.normed.end(), normed.begin(), normed.end());
    all.last.insert(all.last.end(), last.begin(), last.end());
  }
  return all;
}

class NormedTap : public testing::TestWithParam<const char*> {
 protected:
  NormedTap() {
    if (std::string(GetParam()) == "drift") {
      spec = test::drift_spec();
      options = test::with_drift();
    }
    spec.architecture = GetParam();
    spec.hidden = kHidden;
    spec.vocab = kVocab;
  }
  test::TinyModelSpec spec;
  test::TinyEngineOptions options;
};

TEST_P(NormedTap, IsWhatHeadsReadAndChangesNoResult) {
  const test::TinyModel tiny(spec);
  for (const CpuLevel level : {detect_cpu_level(), CpuLevel::kScalar}) {
    if (level == CpuLevel::kScalar && spec.architecture != "llama") continue;
    options.level = level;
    const test::LoadedTiny loaded(tiny, options);
    const auto hidden = loaded.model().hidden_rows(graph::RowEnd::kHidden).value();
    for (const auto& [rows, n] :
         {std::pair{size_t{13}, size_t{13}}, {13, 1}, {13, 4}, {100, 100}}) {
      const Floats want = run(loaded, *hidden, rows, n, kWanted[1], 0, kHidden).logits;
      for (const Wanted& wanted : kWanted) {
        SCOPED_TRACE(testing::Message() << wanted.name << ", " << rows << " rows by " << n);
        const Answers without = run(loaded, loaded.model(), rows, n, wanted, 0);
        const Answers one = run(loaded, loaded.model(), rows, n, wanted, 1);
        const Answers two = run(loaded, loaded.model(), rows, n, wanted, 2);
        EXPECT_EQ(one.normed, want);
        EXPECT_EQ(two.normed, want);
        EXPECT_EQ(one.last, two.last);
        for (const Answers* const with : {&one, &two}) {
          EXPECT_EQ(with->logits, without.logits);
          EXPECT_EQ(with->best, without.best);
          EXPECT_EQ(with->best_logits, without.best_logits);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NormedTap,
                         testing::Values("llama", "exaone4", "glm4moe", "cohere2moe", "qwen35",
                                         "drift", "step35"));

// A model of the first layers has other last hidden states: those of its own head.
TEST(NormedTaps, OfFewerLayersAreTheirOwn) {
  const test::LoadedTiny loaded{test::TinyModel(test::TinyModelSpec())};
  const auto cut = loaded.model().first_layers(1).value();
  const auto hidden = cut->hidden_rows(graph::RowEnd::kHidden).value();
  const auto run_cut = [&](const Model& model, bool taps, int64_t width) {
    const auto cache =
        cache::make_cache("fp32", model.layer_shapes(), 64, engine::system_memory()).value();
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*cache, text(9)).ok());
    Floats normed(9 * kHidden);
    const graph::Tap tap = {graph::kNormedTap, normed.data()};
    batch.finish(width);
    if (taps) batch.batch.taps = {&tap, 1};
    const Status status = model.forward(batch.batch);
    EXPECT_TRUE(status.ok()) << status.message();
    return taps ? normed : batch.results(width);
  };
  EXPECT_EQ(run_cut(*cut, true, kVocab), run_cut(*hidden, false, kHidden));
}

}  // namespace
}  // namespace gen::model
