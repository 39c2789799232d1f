// SPDX-License-Identifier: Apache-2.0
// Random programs over sessions of a caller's own model that keeps a state: those that can be
// copied, that can go back, both or neither, with guesses and without, whose functions and any
// allocation may fail. A call that fails leaves its session as it was, what a session says is what
// a loop over its tokens says, and no state is left behind. GEN_TRIALS sets the number of programs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <random>

#include "generate/digest_tokens.h"
#include "generate/knowing_drafter.h"
#include "generate/loop/generator.h"
#include "generate/said.h"
#include "model/custom_model.h"
#include "support/counting_new.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

constexpr int32_t kContext = 90;

/// Its state is all that it has seen. One call in `odds` fails, having done a part; 0: none.
class Fickle final : public model::CustomForward {
 public:
  Status forward(const graph::Batch& batch, std::span<void* const> states, float* /*features*/,
                 model::CustomAttention* /*attention*/) const override {
    float* row = batch.logits;
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      const graph::BatchSequence& sequence = batch.sequences[i];
      auto& seen = *static_cast<Tokens*>(states[i]);
      const auto begin = static_cast<size_t>(sequence.first_row);
      for (size_t t = begin; t < begin + static_cast<size_t>(sequence.n_rows); ++t) {
        EXPECT_EQ(static_cast<size_t>(batch.positions[t]), seen.size());
        seen.push_back(batch.tokens[t]);
        if (fails()) return error(Code::kDevice, "not today");
        if (batch.wants[t] == 0) continue;
        std::fill_n(row, kVocab, -std::numeric_limits<float>::infinity());
        row[after(seen)] = 1.0F;
        row += kVocab;
      }
    }
    return {};
  }
  Result<void*> new_state() const override {
    if (fails()) return error(Code::kDevice, "none made");
    auto* const made = new Tokens;
    ++live;
    return static_cast<void*>(made);
  }
  Result<void*> clone_state(const void* state) const override {
    if (fails()) return error(Code::kDevice, "none copied");
    auto* const made = new Tokens(*static_cast<const Tokens*>(state));
    ++live;
    return static_cast<void*>(made);
  }
  Status truncate_state(void* state, int32_t n) const override {
    auto& seen = *static_cast<Tokens*>(state);
    if (fails()) {
      seen.push_back(0);
      return error(Code::kDevice, "never look back");
    }
    if (seen.size() > static_cast<size_t>(n)) seen.resize(static_cast<size_t>(n));
    return {};
  }
  void free_state(void* state) const noexcept override {
    --live;
    delete static_cast<Tokens*>(state);
  }

  int32_t odds = 0;
  mutable int32_t live = 0;

 private:
  bool fails() const { return odds > 0 && random_() % static_cast<uint32_t>(odds) == 0; }
  mutable std::mt19937 random_{5};
};

class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed), can_{true, draw(0, 1) == 0, draw(0, 1) == 0} {
    model::ModelTraits traits;
    traits.architecture = "fickle";
    traits.vocab_size = kVocab;
    traits.max_seq_len = kContext;
    GeneratorOptions options;
    options.prefill_chunk = draw(1, 9);
    options.max_sequences = draw(1, 4);
    drafter_ = std::make_shared<KnowingDrafter>(
        KnowingDrafter::Options{.p = draw(0, 4) / 4.0, .rows = draw(1, 6), .vocab = kVocab});
    if (draw(0, 2) > 0) options.drafter = drafter_;
    generator_ = Generator::create(model::CustomModel::create(fickle, traits, can_).value(),
                                   nullptr, options)
                     .value();
  }
  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(testing::Message() << "step " << i);
      step();
    }
    talks_.clear();
    generator_.reset();
    EXPECT_EQ(fickle->live, 0);
  }

  std::shared_ptr<Fickle> fickle = std::make_shared<Fickle>();
  int failures = 0;
  int compared = 0;

 private:
  struct Talk {
    std::shared_ptr<Session> session;
    Tokens tokens;
  };
  int32_t draw(int32_t from, int32_t to) {
    return from + static_cast<int32_t>(random_() % static_cast<uint32_t>(to - from + 1));
  }
  /// A call in which something may go wrong.
  template <typename Call>
  Status guarded(const Call& call) {
    fickle->odds = draw(0, 1) * draw(2, 30);
    test::fail_new_at = test::news + static_cast<size_t>(draw(0, 1) == 0 ? 10000 : draw(0, 120));
    Status status;
    try {
      status = call();
    } catch (const std::bad_alloc&) {
      status = Status(Code::kOutOfMemory, "bad_alloc");
    }
    test::fail_new_at = ~size_t{0};
    fickle->odds = 0;
    return status;
  }
  bool went_well(const Status& status) {
    if (status.ok()) return true;
    ++failures;
    EXPECT_TRUE(status.code() == Code::kOutOfMemory || status.code() == Code::kDevice)
        << status.message();
    return false;
  }
  void compare(const Talk& talk) {
    EXPECT_EQ(talk.session->tokens().value(), talk.tokens);
    EXPECT_LE(talk.session->cache().length(), talk.session->length());
  }
  Tokens prompt(int32_t least) {
    Tokens tokens(static_cast<size_t>(draw(least, 12)));
    for (int32_t& token : tokens) token = draw(0, kVocab - 1);
    return tokens;
  }

  void step() {
    if (talks_.empty() || (talks_.size() < 4 && draw(0, 9) == 0)) {
      talks_.push_back({generator_->new_session().value(), {}});
    }
    Talk& talk = talks_[static_cast<size_t>(draw(0, static_cast<int32_t>(talks_.size()) - 1))];
    if (talk.tokens.size() + 30 > kContext) {
      ASSERT_TRUE(talk.session->truncate(0).ok());
      talk.tokens.clear();
    }
    switch (draw(0, 5)) {
      case 0: {
        const Tokens more = prompt(0);
        if (went_well(
                guarded([&] { return talk.session->append({.text = {}, .tokens = more}); }))) {
          talk.tokens = join(talk.tokens, more);
        }
        break;
      }
      case 1: {
        const int32_t n = draw(0, static_cast<int32_t>(talk.tokens.size()));
        const Status status = guarded([&] { return talk.session->truncate(n); });
        const bool may = can_.truncate || n == 0 || static_cast<size_t>(n) == talk.tokens.size();
        EXPECT_EQ(status.code(), may ? Code::kOk : Code::kUnsupported);
        if (may) talk.tokens.resize(static_cast<size_t>(n));
        break;
      }
      case 2:
        fork(talk);
        break;
      default:
        generate(talk);
    }
    for (const Talk& each : talks_) compare(each);
  }
  void fork(const Talk& from) {
    const Talk talk = from;
    if (talks_.size() >= 5) talks_.erase(talks_.begin());
    Talk made{nullptr, talk.tokens};
    const Status status = guarded([&]() -> Status {
      GEN_ASSIGN(made.session, talk.session->fork());
      return {};
    });
    if (status.code() == Code::kUnsupported) {
      EXPECT_FALSE(can_.clone);
    } else if (went_well(status)) {
      talks_.push_back(made);
    }
  }
  void generate(Talk& talk) {
    const Tokens more = prompt(talk.tokens.empty() ? 1 : 0);
    const int32_t n = draw(1, 12);
    const Tokens asked = join(talk.tokens, more);
    const Tokens want = expected(asked, n);
    drafter_->learn(join(asked, want));
    int32_t stop_at = draw(0, 3) == 0 ? draw(0, n - 1) : -1;
    const auto stop = [](void* user, const Event& event) -> int32_t {
      return !event.done && event.index == *static_cast<int32_t*>(user) ? 5 : 0;
    };
    CallParams params = params_of(n);
    params.sampling.temperature = 0;
    std::optional<GenResult> result;
    const Status status = guarded([&] {
      return talk.session->generate({.text = {}, .tokens = more}, params, stop, &stop_at, &result);
    });
    if (result.has_value() && result->user_code == 5) {
      talk.tokens = join(asked, first(want, static_cast<size_t>(stop_at) + 1));
      EXPECT_EQ(join(asked, result->tokens), talk.tokens);
    } else if (went_well(status)) {
      EXPECT_EQ(result->tokens, want);
      talk.tokens = join(asked, want);
      ++compared;
    }
  }

  std::mt19937 random_;
  model::CustomStates can_;
  std::shared_ptr<KnowingDrafter> drafter_;
  std::shared_ptr<const Generator> generator_;
  std::vector<Talk> talks_;
};

TEST(CustomPrograms, WhatFailedLeavesItsSessionAsItWas) {
  const char* wanted = std::getenv("GEN_TRIALS");
  const int trials = wanted != nullptr ? std::atoi(wanted) : test::fewer(200);
  int failures = 0;
  int compared = 0;
  for (int trial = 0; trial < trials && !HasFailure(); ++trial) {
    SCOPED_TRACE(testing::Message() << "program " << trial);
    Program program(static_cast<uint32_t>(trial));
    program.run(60);
    failures += program.failures;
    compared += program.compared;
  }
  EXPECT_GT(failures, trials);
  EXPECT_GT(compared, 5 * trials);
}

}  // namespace
}  // namespace gen::generate
