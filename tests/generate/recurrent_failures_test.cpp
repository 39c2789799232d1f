// SPDX-License-Identifier: Apache-2.0
// Random programs over sessions of a model with recurrent layers in which any allocation may fail,
// that of a state among them:
// prompts are appended, scored and generated from, sessions are cut, forked, saved, loaded and lose
// their blocks to others, with guesses and without, beside a prefix cache and without. A call that
// fails leaves its session as it was; what a session says afterwards is what a fresh one says that
// is given its tokens, to the bit. GEN_TRIALS sets the number of programs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "generate/knowing_drafter.h"
#include "generate/prefix_world.h"
#include "support/counting_allocator.h"
#include "support/counting_new.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

class Program {
 public:
  Program(uint32_t seed, PrefixWorld* plain) : random_(seed), plain_(*plain), world_(options()) {
    world_.leave_free(static_cast<size_t>(draw(28, 60)));
    drafter_ = std::make_shared<KnowingDrafter>(
        KnowingDrafter::Options{.p = draw(0, 4) / 4.0, .rows = draw(1, 6)});
    if (draw(0, 2) > 0) world_.options.drafter = drafter_;
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(testing::Message() << "step " << i);
      step();
    }
  }
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
  PrefixOptions options() {
    PrefixOptions made{.block_size = draw(2, 8),
                       .capacity = 20 * draw(0, 1),
                       .chunk = draw(1, 12),
                       .sequences = draw(1, 4)};
    made.recurrent = true;
    made.every = draw(0, 1) * draw(0, 9);
    made.budget = draw(0, 2) > 0 ? -1 : draw(0, 120000);
    made.allocator = &engine_;
    return made;
  }
  Tokens prompt(int32_t least) {
    return text_of(static_cast<uint32_t>(draw(1, 4)), static_cast<size_t>(draw(least, 16)));
  }
  /// One that is far off does not come.
  size_t nth() { return static_cast<size_t>(draw(0, 2) == 0 ? draw(0, 8) : draw(0, 400)); }
  /// What a call says one of whose allocations fails, or that it threw what the C API turns into
  /// the same.
  template <typename Call>
  Status guarded(const Call& call) {
    const bool of_engine = draw(0, 2) == 0;
    if (of_engine) {
      engine_.fail_at = engine_.calls + nth() / 8;
    } else {
      test::fail_new_at = test::news + nth();
    }
    Status status;
    try {
      status = call();
    } catch (const std::bad_alloc&) {
      status = Status(Code::kOutOfMemory, "bad_alloc");
    }
    test::fail_new_at = engine_.fail_at = ~size_t{0};
    return status;
  }

  bool went_well(const Status& status) {
    if (status.ok()) return true;
    ++failures;
    EXPECT_TRUE(status.code() == Code::kOutOfMemory || status.code() == Code::kPoolExhausted)
        << status.message();
    return false;
  }
  void compare(const Session& session, const Tokens& want) {
    EXPECT_EQ(session.tokens().value(), want);
    EXPECT_LE(session.cache().length(), session.length());
  }

  void step() {
    if (talks_.empty() || (talks_.size() < 4 && draw(0, 9) == 0)) {
      talks_.push_back({world_.session(), {}});
    }
    Talk& talk = talks_[static_cast<size_t>(draw(0, static_cast<int32_t>(talks_.size()) - 1))];
    const int32_t room = kContext - static_cast<int32_t>(talk.tokens.size());
    if (room < 30) {
      ASSERT_TRUE(talk.session->truncate(draw(0, 20)).ok());
      talk.tokens = talk.session->tokens().value();
    }
    switch (draw(0, 8)) {
      case 0:
        return append(talk);
      case 1:
        return score(talk);
      case 2:
        return truncate(talk);
      case 3:
        return fork(talk);
      case 4:
        return save(talk);
      case 5:
        return probe(talk);
      default:
        return generate(talk);
    }
  }

  void append(Talk& talk) {
    const Tokens more = prompt(0);
    const Status status =
        guarded([&] { return talk.session->append({.text = {}, .tokens = more}); });
    if (went_well(status)) talk.tokens = join(talk.tokens, more);
    compare(*talk.session, talk.tokens);
  }
  void score(Talk& talk) {
    const Tokens more = prompt(1);
    std::vector<float> scores;
    const Status status = guarded(
        [&] { return talk.session->score({.text = {}, .tokens = more}, &scores, nullptr); });
    if (went_well(status) && !talk.tokens.empty()) {
      const auto fresh = plain_.session();
      std::vector<float> want;
      ASSERT_TRUE(fresh->append({.text = {}, .tokens = talk.tokens}).ok());
      ASSERT_TRUE(fresh->score({.text = {}, .tokens = more}, &want, nullptr).ok());
      EXPECT_EQ(scores, want);
      ++compared;
    }
    compare(*talk.session, talk.tokens);
  }
  void truncate(Talk& talk) {
    const int32_t n = draw(0, static_cast<int32_t>(talk.tokens.size()));
    ASSERT_TRUE(guarded([&] { return talk.session->truncate(n); }).ok());
    talk.tokens = first(talk.tokens, static_cast<size_t>(n));
    compare(*talk.session, talk.tokens);
  }
  void fork(Talk& talk) {
    if (talks_.size() >= 5) {
      talks_.erase(talks_.begin());
      return;
    }
    std::shared_ptr<Session> made;
    const Status status = guarded([&]() -> Status {
      GEN_ASSIGN(made, talk.session->fork());
      return {};
    });
    compare(*talk.session, talk.tokens);
    if (!went_well(status)) return;
    compare(*made, talk.tokens);
    talks_.push_back({made, talk.tokens});
  }
  void save(Talk& talk) {
    const std::vector<std::byte> state = state_of(*talk.session);
    const auto loaded = world_.session();
    const Status status = guarded([&] { return loaded->load(state); });
    if (!went_well(status)) return compare(*loaded, {});
    compare(*loaded, talk.tokens);
    talk.session = loaded;
  }
  void generate(Talk& talk) {
    const Tokens more = prompt(talk.tokens.empty() ? 1 : 0);
    const int32_t n = draw(1, 12);
    const Tokens asked = join(talk.tokens, more);
    const Said want = say(plain_, asked, n);
    drafter_->learn(join(asked, want.tokens));
    std::optional<GenResult> result;
    const Status status = guarded([&] {
      return talk.session->generate({.text = {}, .tokens = more}, params_of(n), nullptr, nullptr,
                                    &result);
    });
    if (went_well(status)) {
      EXPECT_EQ((Said{status, result->tokens, result->logprobs}), want);
      talk.tokens = join(asked, want.tokens);
      ++compared;
    } else if (result.has_value() && !result->tokens.empty()) {
      EXPECT_EQ(result->tokens, first(want.tokens, result->tokens.size()));
    }
    compare(*talk.session, talk.tokens);
  }
  void probe(Talk& talk) {
    if (talk.tokens.empty()) return;
    const Said said = say(*talk.session, {}, 3);
    if (!went_well(said.status)) return;
    EXPECT_EQ(said, say(plain_, talk.tokens, 3));
    talk.tokens = join(talk.tokens, said.tokens);
    ++compared;
  }

  std::mt19937 random_;
  test::CountingAllocator engine_;  // outlives the world
  PrefixWorld& plain_;
  PrefixWorld world_;
  std::shared_ptr<KnowingDrafter> drafter_;
  std::vector<Talk> talks_;
};

TEST(RecurrentFailures, WhatFailedLeavesItsSessionAsItWas) {
  const char* wanted = std::getenv("GEN_TRIALS");
  const int trials = wanted != nullptr ? std::atoi(wanted) : test::fewer(40);
  PrefixOptions alone;
  alone.capacity = 0;
  alone.recurrent = true;
  PrefixWorld plain(alone);
  int failures = 0;
  int compared = 0;
  for (int trial = 0; trial < trials && !HasFailure(); ++trial) {
    SCOPED_TRACE(testing::Message() << "program " << trial);
    Program program(static_cast<uint32_t>(trial), &plain);
    program.run(60);
    failures += program.failures;
    compared += program.compared;
  }
  EXPECT_GT(failures, trials);
  EXPECT_GT(compared, 5 * trials);
}

}  // namespace
}  // namespace gen::generate
