// SPDX-License-Identifier: Apache-2.0
// Speculation that costs more than it brings turns itself off: whole calls with the policy auto, on
// a clock that passes and drafters move, take hardly longer than plain decoding, and say the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "generate/batch_run.h"
#include "generate/cache_forms.h"
#include "generate/knowing_drafter.h"
#include "support/fake_model.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

constexpr int32_t kContext = 230;
constexpr int32_t kTokens = 200;
constexpr int32_t kRounds = 5;

/// Takes `each` for a token of the longest guess.
class TimedDrafter final : public Drafter {
 public:
  TimedDrafter(std::shared_ptr<KnowingDrafter> inner, double each, double* now)
      : inner_(std::move(inner)), each_(each), now_(*now) {}
  int32_t max_rows() const noexcept override { return inner_->max_rows(); }
  std::unique_ptr<DraftState> begin() override { return inner_->begin(); }
  void propose(std::span<DraftJob* const> jobs) override {
    inner_->propose(jobs);
    int32_t depth = 0;
    for (const DraftJob* const job : jobs) depth = std::max(depth, job->tree.rows() - 1);
    now_ += each_ * depth;
  }

 private:
  std::shared_ptr<KnowingDrafter> inner_;
  double each_;
  double& now_;
};

struct Case {
  double slope;     // what a row more takes, where a pass of one takes 1
  double drafting;  // and a token of a guess
  double p;         // that a guess is right
  int32_t sessions;
};

/// What the texts are, and how long they took.
struct Timed {
  std::vector<Tokens> texts;
  std::vector<double> rounds;
  double seconds = 0;  // of the median round
};

Timed run_all(const Case& costs, const std::vector<Tokens>* known) {
  double now = 0;
  const auto model = std::make_shared<test::FakeModel>(kFormsVocab, kContext);
  model->before_forward = [&](const graph::Batch& batch) -> Status {
    now += 1 + costs.slope * static_cast<double>(batch.rows() - 1);
    return {};
  };
  GeneratorOptions options;
  options.cache_factory = [](std::span<const cache::LayerShape>,
                             int32_t capacity) -> Result<std::unique_ptr<cache::KvCache>> {
    return std::unique_ptr<cache::KvCache>(std::make_unique<test::FakeCache>(capacity, true));
  };
  std::vector<Tokens> prompts;
  for (int32_t i = 0; i < costs.sessions; ++i) {
    prompts.push_back(text_of(static_cast<uint32_t>(i + 1), 3));
  }
  if (known != nullptr) {
    const auto knowing =
        std::make_shared<KnowingDrafter>(KnowingDrafter::Options{costs.p, 8, 1, kFormsVocab});
    for (size_t i = 0; i < known->size(); ++i) knowing->learn(join(prompts[i], (*known)[i]));
    options.drafter = std::make_shared<TimedDrafter>(knowing, costs.drafting, &now);
    options.draft_policy.kind = DraftPolicy::Kind::kAuto;
    options.draft_policy.clock = [&now] { return now; };
  }
  const auto generator = Generator::create(model, nullptr, options).value();
  std::vector<BatchRequest> requests(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    requests[i].prompt.tokens = prompts[i];
    requests[i].params = params_of(kTokens);
  }
  Timed run;
  for (int32_t round = 0; round < kRounds; ++round) {
    const double begin = now;
    run.texts.clear();
    for (const GenResult& result : run_batch(*generator, requests, nullptr, nullptr)) {
      EXPECT_TRUE(result.status.ok()) << result.status.message();
      run.texts.push_back(result.tokens);
    }
    run.rounds.push_back(now - begin);
  }
  std::nth_element(run.rounds.begin(), run.rounds.begin() + kRounds / 2, run.rounds.end());
  run.seconds = run.rounds[kRounds / 2];
  return run;
}

TEST(DraftCosts, NeverMuchMoreThanPlainDecoding) {
  test::Thinned thinned(7);
  for (const int32_t sessions : {1, 4}) {
    for (const double slope : {0.0, 0.02, 0.1, 0.3, 1.0}) {
      const Timed plain = run_all({slope, 0, 0, sessions}, nullptr);
      for (const double p : {0.0, 0.2, 0.5, 0.8, 1.0}) {
        for (const double drafting : {0.0, 0.1, 0.5}) {
          if (thinned.skips()) continue;
          const Case costs{slope, drafting, p, sessions};
          const Timed drafted = run_all(costs, &plain.texts);
          SCOPED_TRACE(testing::Message()
                       << sessions << " sessions, " << slope << " a row, chance " << p << ", "
                       << drafting << " a guess: " << plain.seconds / drafted.seconds);
          EXPECT_EQ(drafted.texts, plain.texts);
          EXPECT_GE(plain.seconds, 0.97 * drafted.seconds);
        }
      }
    }
  }
}

}  // namespace
}  // namespace gen::generate
