// SPDX-License-Identifier: Apache-2.0
// Drafts and adapters: all rows of a sequence that has one run with it, guesses too, whoever
// guesses without it and whoever runs beside it. What is said is what plain decoding says, to the
// bit.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "generate/cache_forms.h"
#include "generate/knowing_drafter.h"
#include "generate/passing_model.h"
#include "generate/small_drafter.h"
#include "support/adapter_values.h"

namespace gen::generate {
namespace {

/// Runs the sequences of some caches with an adapter.
class AdaptedModel final : public PassingModel {
 public:
  explicit AdaptedModel(const test::LoadedTiny& tiny)
      : PassingModel(tiny.model()), table_(test::adapter_table(test::plan_of(tiny), 4)) {}

  Status forward(const graph::Batch& batch) const override {
    std::vector<graph::BatchSequence> sequences(batch.sequences.begin(), batch.sequences.end());
    for (graph::BatchSequence& sequence : sequences) {
      if (!adapted.contains(sequence.cache)) continue;
      sequence.adapter = 0;
      if (sequence.n_rows > 1 && batch.wants[static_cast<size_t>(sequence.first_row)] != 0)
        ++drafted;
    }
    graph::Batch changed = batch;
    changed.sequences = sequences;
    changed.adapters = table_.get();
    return PassingModel::forward(changed);
  }

  std::map<const cache::KvCache*, int32_t> adapted;
  mutable std::atomic<int32_t> drafted{0};  // passes over guesses with the adapter

 private:
  std::shared_ptr<const graph::AdapterTable> table_;
};

TEST(AdaptedDrafts, ShowInNoResult) {
  constexpr int32_t kSaid = 30;
  test::TinyModelSpec spec;
  spec.context = kFormsContext;
  spec.vocab = kFormsVocab;
  const test::LoadedTiny tiny{test::TinyModel(spec)};
  const Tokens prompt = text_of(1, 9);
  const auto told = [&](std::shared_ptr<Drafter> drafter, std::vector<Said>* said) {
    const auto model = std::make_shared<AdaptedModel>(tiny);
    GeneratorOptions options;
    options.drafter = std::move(drafter);
    const auto generator = Generator::create(model, nullptr, options).value();
    const auto with = generator->new_session().value();
    const auto without = generator->new_session().value();
    model->adapted[&with->cache()] = 0;
    std::thread beside([&] { (*said)[1] = say(*without, prompt, kSaid); });
    (*said)[0] = say(*with, prompt, kSaid);
    beside.join();
    return model->drafted.load();
  };
  std::vector<Said> plain(2);
  EXPECT_EQ(told(nullptr, &plain), 0);
  EXPECT_NE(plain[0].tokens, plain[1].tokens);
  for (const double p : {0.0, 0.6, 1.0}) {
    for (const int32_t branches : {1, 3}) {
      const auto drafter =
          std::make_shared<KnowingDrafter>(KnowingDrafter::Options{p, 5, branches, kFormsVocab});
      for (const Said& each : plain) drafter->learn(join(prompt, each.tokens));
      std::vector<Said> said(2);
      EXPECT_GT(told(drafter, &said), 3);
      EXPECT_EQ(said, plain) << p << " " << branches;
      EXPECT_EQ(drafter->accepted > 0, p > 0);
    }
  }
  // The model itself guesses, without the adapter.
  std::vector<Said> said(2);
  EXPECT_GT(told(small_drafter(4, true), &said), 3);
  EXPECT_EQ(said, plain);
}

}  // namespace
}  // namespace gen::generate
