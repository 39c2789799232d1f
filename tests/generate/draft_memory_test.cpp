// SPDX-License-Identifier: Apache-2.0
// Memory that a drafter does not get means guesses that are not made, and a count of the metric:
// never an error, and never another text. Each allocation of every drafter fails in turn, for its
// states, its proposals, its forks and its caches, and each of a call's own that guesses need.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/metrics_memory.h"
#include "generate/cache_forms.h"
#include "generate/draft/drafter_list.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/draft/suffix_lookup.h"
#include "generate/loop/run.h"
#include "generate/request/metric_names.h"
#include "generate/small_drafter.h"
#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"
#include "support/counting_allocator.h"
#include "support/counting_new.h"
#include "support/refusing_memory.h"

namespace gen::generate {
namespace {

/// While one lives, allocation `nth` of all that came while one did fails.
class Region {
 public:
  struct Plan {
    size_t nth = ~size_t{0};
    size_t seen = 0;
    [[nodiscard]] bool reached() const noexcept { return seen > nth; }
  };
  explicit Region(Plan* plan) : plan_(*plan), begin_(test::news) {
    if (plan_.nth >= plan_.seen) test::fail_new_at = begin_ + (plan_.nth - plan_.seen);
  }
  ~Region() {
    test::fail_new_at = ~size_t{0};
    plan_.seen += test::news - begin_;
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  Plan& plan_;
  size_t begin_;
};

/// Another drafter, all of whose work is done in regions.
class Watched final : public Drafter {
 public:
  Watched(std::shared_ptr<Drafter> inner, Region::Plan* plan)
      : inner_(std::move(inner)), plan_(plan) {}
  int32_t max_rows() const noexcept override { return inner_->max_rows(); }
  int32_t max_proposed() const noexcept override { return inner_->max_proposed(); }
  std::unique_ptr<DraftState> begin() override {
    auto made = std::make_unique<State>(plan_);
    const Region region(plan_);
    made->inner = inner_->begin();
    if (made->inner == nullptr) return nullptr;
    return made;
  }
  void look_up(std::span<DraftJob* const> jobs) override { pass_on(jobs, &Drafter::look_up); }
  void propose(std::span<DraftJob* const> jobs) override { pass_on(jobs, &Drafter::propose); }

 private:
  void pass_on(std::span<DraftJob* const> jobs, void (Drafter::*what)(std::span<DraftJob* const>)) {
    const GiveBack give_back(jobs);
    for (DraftJob* const job : jobs) job->state = static_cast<State*>(job->state)->inner.get();
    const Region region(plan_);
    (inner_.get()->*what)(jobs);
  }

  struct GiveBack {
    explicit GiveBack(std::span<DraftJob* const> of) : jobs(of) {
      for (DraftJob* const job : jobs) states.push_back(job->state);
    }
    ~GiveBack() {
      for (size_t i = 0; i < jobs.size(); ++i) jobs[i]->state = states[i];
    }
    GiveBack(const GiveBack&) = delete;
    GiveBack& operator=(const GiveBack&) = delete;
    std::span<DraftJob* const> jobs;
    std::vector<DraftState*> states;
  };
  struct State final : DraftState {
    explicit State(Region::Plan* of) : plan(of) {}
    void accepted(std::span<const int32_t> path) noexcept override {
      const Region region(plan);
      inner->accepted(path);
    }
    void ended(std::span<const int32_t> text) noexcept override {
      const Region region(plan);
      inner->ended(text);
    }
    std::unique_ptr<DraftState> fork() const override {
      auto made = std::make_unique<State>(plan);
      const Region region(plan);
      made->inner = inner->fork();
      if (made->inner == nullptr) return nullptr;
      return made;
    }
    Region::Plan* plan;
    std::unique_ptr<DraftState> inner;
  };
  std::shared_ptr<Drafter> inner_;
  Region::Plan* plan_;
};

std::shared_ptr<Drafter> layers_drafter(int32_t most, engine::EngineMemory& memory) {
  ModelDrafter::Options options;
  options.most = most;
  options.vocab = kFormsVocab;
  options.context = kFormsContext;
  options.prompt_rows = 8;
  options.memory = &memory;
  return ModelDrafter::create(forms_place(false).model.first_layers(1).value(), options).value();
}

constexpr int32_t kKinds = 6;

std::shared_ptr<Drafter> drafter_of(int32_t kind, engine::EngineMemory& memory) {
  const auto suffix =
      std::make_shared<SuffixLookup>(SuffixLookup::Options{.most = 4, .recent = 500});
  switch (kind) {
    case 0:
      return std::make_shared<NgramLookup>(1, 4);
    case 1:
      return suffix;
    case 2:
      return small_drafter(4, true, 8, memory);
    case 3:
      return small_drafter(4, false, 8, memory);
    case 4:
      return layers_drafter(3, memory);
    default:
      return std::make_shared<DrafterList>(suffix, small_drafter(3, true, 8, memory));
  }
}

CallParams drawing(int32_t n, const std::shared_ptr<const grammar::Grammar>& under = nullptr) {
  CallParams params = params_of(n);
  params.sampling.temperature = 0.8;
  params.sampling.repetition_penalty = 1.2;
  params.grammar = under;
  return params;
}

/// What a session, its fork and a second call of it say.
struct Life {
  std::vector<Tokens> said;
  double failed = 0;  // as the metric has it
  int64_t drafted = 0;
  int64_t accepted = 0;
};

Life live(std::shared_ptr<Drafter> drafter) {
  GeneratorOptions options;
  options.drafter = std::move(drafter);
  const auto metrics = std::make_shared<MetricsMemory>();
  options.metrics = metrics;
  options.prefill_chunk = 16;
  const std::shared_ptr<const model::Model> model(std::shared_ptr<void>(),
                                                  &forms_place(false).model);
  const auto generator = Generator::create(model, nullptr, options).value();
  Life life;
  const auto say_more = [&](Session& session, const Tokens& prompt, int32_t n) {
    std::optional<GenResult> result;
    const Status status =
        session.generate({.text = {}, .tokens = prompt}, drawing(n), nullptr, nullptr, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    life.said.push_back(result.has_value() ? result->tokens : Tokens());
  };
  const auto session = generator->new_session().value();
  say_more(*session, text_of(3, 20), 12);
  auto fork = session->fork();
  EXPECT_TRUE(fork.ok()) << fork.status().message();
  say_more(*session, {5}, 6);
  if (fork.ok()) say_more(**fork, {6, 7}, 6);
  life.failed = metrics->snapshot().value(metric::kDraftsFailed);
  life.drafted = generator->draft_use().drafted;
  life.accepted = generator->draft_use().accepted;
  return life;
}

TEST(DraftMemory, EachAllocationOfADrafterMayFail) {
  const Life plain = live(nullptr);
  for (int32_t kind = 0; kind < kKinds; ++kind) {
    int32_t counted = 0;
    size_t nth = 0;
    for (bool reached = true; reached; ++nth) {
      SCOPED_TRACE(testing::Message() << "drafter " << kind << ", allocation " << nth);
      test::CountingAllocator memory;
      Region::Plan plan{.nth = nth};
      const Life life = live(std::make_shared<Watched>(drafter_of(kind, memory), &plan));
      reached = plan.reached();
      EXPECT_EQ(life.said, plain.said);
      if (life.failed > 0) ++counted;
      if (!reached) {
        EXPECT_EQ(life.failed, 0);
        EXPECT_GT(life.drafted, 0);
        if (kind == 2) {  // it is the model
          EXPECT_GT(life.accepted, 0);
        }
      }
      if (HasFailure() || nth > 2000) return;
    }
    EXPECT_GT(nth, 3U) << kind;
    // What is made anew when it is needed, or is only remembered for others, is not missed.
    EXPECT_GT(counted, kind == 1 ? 0 : static_cast<int32_t>(nth) / 2) << kind;
  }
}

TEST(DraftMemory, EachPieceOfADraftersCachesMayFail) {
  const Life plain = live(nullptr);
  for (const int32_t kind : {2, 3, 4, 5}) {
    size_t nth = 0;
    int32_t counted = 0;
    for (bool reached = true; reached; ++nth) {
      SCOPED_TRACE(testing::Message() << "drafter " << kind << ", piece " << nth);
      test::CountingAllocator memory;
      memory.fail_at = nth;
      const Life life = live(drafter_of(kind, memory));
      reached = memory.calls > nth;
      EXPECT_EQ(life.said, plain.said);
      if (life.failed > 0) ++counted;
      if (!reached) {
        EXPECT_EQ(life.failed, 0);
      }
      if (HasFailure()) return;
    }
    EXPECT_GT(nth, 2U);
    EXPECT_GT(counted, 0);  // a fork's cache is made anew when it is needed
  }
}

// A lookup's guesses are cut to the grammar by the call's own matcher.
TEST(DraftMemory, WhereAMatcherFailsItStaysWhereItWas) {
  const auto vocabulary = grammar::test::vocabulary(grammar::test::all_bytes());
  const auto under = grammar::Grammar::from_regex("(ab|cd)*e").value()->over(vocabulary).value();
  for (size_t nth = 0;; ++nth) {
    grammar::Matcher matcher = grammar::Matcher::create(under).value();
    DraftJob job;
    job.matcher = &matcher;
    job.tree.reserve(40);
    job.tree.begin('z');
    for (int32_t row = 0; row < 39; ++row) job.tree.add("abcd"[row % 4], row);
    bool failed = false;
    test::fail_new_at = test::news + nth;
    try {
      cut_to_rule(&job);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    test::fail_new_at = ~size_t{0};
    EXPECT_EQ(matcher.accepted(), 0U) << nth;
    EXPECT_TRUE(matcher.accept_token('c').value()) << nth;
    if (failed) continue;
    EXPECT_EQ(job.tree.rows(), 40);
    EXPECT_GT(nth, 1U);
    break;
  }
}

// A draft model whose passes fail from the prompt on, for caches that its engine cannot reach, is
// no secret either.
TEST(DraftMemory, ADrafterThatNeverWorksIsCounted) {
  test::RefusingMemory elsewhere;
  const Life life = live(small_drafter(4, true, 8, elsewhere));
  EXPECT_EQ(life.said, live(nullptr).said);
  EXPECT_EQ(life.drafted, 0);
  EXPECT_GT(life.failed, 3);
}

// Opening a call takes memory for itself and for guesses: no more failures end it than without
// those.
TEST(DraftMemory, EachAllocationOfACallsBeginningMayFail) {
  const auto under = grammar::Grammar::from_regex("([a-k]{1,3}[l-z])*").value();
  const Tokens prompt = text_of(4, 9);
  const auto opened = [&](const std::shared_ptr<const Generator>& generator, size_t nth,
                          bool* reached) {
    const auto session = generator->new_session().value();
    std::optional<Tokens> said;
    CallParams params = drawing(8, under);
    const size_t before = test::news;
    test::fail_new_at = before + nth;
    try {
      auto call = session->open({.text = {}, .tokens = prompt}, std::move(params));
      *reached = test::news > before + nth;
      test::fail_new_at = ~size_t{0};
      if (call.ok()) {
        EXPECT_TRUE(pull_all(call->get(), nullptr, nullptr).ok());
        said = (*call)->result().tokens;
      } else {
        EXPECT_EQ(call.status().code(), Code::kOutOfMemory);
      }
    } catch (const std::bad_alloc&) {  // as the C API reports it
      *reached = true;
      test::fail_new_at = ~size_t{0};
    }
    return said;
  };
  const auto failures = [&](int32_t kind, const Tokens& want) {
    int32_t ended = 0;
    for (size_t nth = 0;; ++nth) {
      bool reached = false;
      const auto drafter = kind < 0 ? nullptr : drafter_of(kind, engine::system_memory());
      const auto said = opened(generator_of({}, 16, 8, drafter), nth, &reached);
      if (!reached) return ended;
      if (said.has_value()) {
        EXPECT_EQ(*said, want) << kind << ", " << nth;
      } else {
        ++ended;
      }
    }
  };
  bool reached = false;
  const auto want = opened(generator_of({}, 16), ~size_t{0} >> 1, &reached);
  ASSERT_TRUE(want.has_value());
  const int32_t own = failures(-1, *want);
  EXPECT_GT(own, 3);
  for (int32_t kind = 0; kind < kKinds; ++kind) EXPECT_LE(failures(kind, *want), own) << kind;
}

}  // namespace
}  // namespace gen::generate
