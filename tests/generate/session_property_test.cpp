// SPDX-License-Identifier: Apache-2.0
// Random programs over sessions, in every form of cache: prompts are appended, scored, generated
// and streamed; streams of several sessions are pulled and looked at in turns, and closed,
// cancelled or freed at any moment; sessions are cut, emptied, forked, saved and loaded between all
// that, and batches run beside them, in two of three programs with drafts: of one who knows what is
// right and says so more or less often, of lookups, and of another model or the same.
// Whatever happened, what a session says must be what a fresh one says that is given its tokens, to
// the bit. GEN_TRIALS sets the number of programs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "generate/batch_run.h"
#include "generate/cache_forms.h"
#include "generate/knowing_drafter.h"
#include "generate/small_drafter.h"
#include "generate/speculative/drafter_chain.h"
#include "generate/speculative/ngram_lookup.h"
#include "generate/speculative/suffix_lookup.h"

namespace gen::generate {
namespace {

using Random = std::mt19937;

int32_t draw(Random& random, int32_t from, int32_t to) {
  return from + static_cast<int32_t>(random() % static_cast<uint32_t>(to - from + 1));
}

/// A session, what it holds, and the stream that is open on it.
struct Talk {
  std::shared_ptr<Session> session;
  Tokens tokens = {};  // before the stream was opened
  bool may_be_cancelled = false;
  std::unique_ptr<Generation> stream = nullptr;
  Tokens asked = {};  // tokens and the stream's prompt
  Said said = {};     // what it should say
  size_t given = 0;   // of that
};

class Program {
 public:
  Program(Random random, const CacheForm& form, const FreshSessions& fresh)
      : random_(random),
        tight_(form.pool_blocks > 0),
        fresh_(fresh),
        kind_(draw(random_, 0, 8)),
        knowing_(kind_ < 3 ? nullptr : knowing(random_)),
        drafter_(drafter()),
        generator_(generator_of(form, draw(random_, 1, 12), draw(random_, 1, 6), drafter_)) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(testing::Message() << "step " << i);
      step();
    }
    for (Talk& talk : talks_) close(talk);
    for (Talk& talk : talks_) probe(talk);
  }

 private:
  std::shared_ptr<Drafter> drafter() {
    const int32_t most = draw(random_, 1, 12);
    const auto ngram = std::make_shared<NgramLookup>(draw(random_, 1, 4), most);
    const auto suffix = std::make_shared<SuffixLookup>(
        SuffixLookup::Options{.most = most, .recent = draw(random_, 0, 1) * 2000});
    switch (kind_) {
      case 0:
      case 1:
      case 2:
        return nullptr;
      case 3:
      case 4:
        return ngram;
      case 5:
        return suffix;
      case 6:
        return small_drafter(most, draw(random_, 0, 1) == 0, draw(random_, 2, 20));
      case 7:
        return std::make_shared<DrafterChain>(suffix, small_drafter(most, true, 9));
      default:
        return knowing_;
    }
  }
  static std::shared_ptr<KnowingDrafter> knowing(Random& random) {
    KnowingDrafter::Options options;
    options.p = draw(random, 0, 4) / 4.0;
    options.rows = draw(random, 1, 12);
    options.branches = draw(random, 1, 3);
    options.vocab = kFormsVocab;
    return std::make_shared<KnowingDrafter>(options);
  }
  /// What a fresh session says, which the drafter then knows.
  Said expect(const Tokens& asked, int32_t n) {
    Said said = fresh_.say(asked, n);
    if (knowing_ != nullptr) knowing_->learn(join(asked, said.tokens));
    return said;
  }

  void step() {
    if (talks_.empty() || (talks_.size() < 5 && draw(random_, 0, 9) == 0)) {
      talks_.push_back({.session = generator_->new_session().value()});
    }
    Talk& talk = talks_[static_cast<size_t>(draw(random_, 0, static_cast<int32_t>(talks_.size()) - 1))];
    if (talk.stream != nullptr) {
      const int32_t what = draw(random_, 0, 11);
      if (what == 0) return close(talk);
      if (what == 1) return cancel(talk);
      if (what == 2) return expect_busy(talk);
      if (what == 3) return free(talk);
      if (what == 4) return batch();
      return pull(talk);
    }
    switch (draw(random_, 0, 13)) {
      case 0:
        return append(talk);
      case 1:
        return score(talk);
      case 2:
        return generate(talk);
      case 3:
        return truncate(talk);
      case 4:
        return reset(talk);
      case 5:
        return fork(talk);
      case 6:
        return save(talk);
      case 7:
        return cancel(talk);
      case 8:
        return draw(random_, 0, 2) == 0 ? free(talk) : probe(talk);
      case 9:
        return batch();
      default:
        return open(talk);
    }
  }

  Tokens prompt() { return text_of(static_cast<uint32_t>(draw(random_, 1, 6)),
                                   static_cast<size_t>(draw(random_, 0, 20))); }
  CallParams params(int32_t n) const {
    CallParams made = params_of(n);
    made.stops.ignore_eos = true;
    return made;
  }
  /// True if the call did what it should; a failure is one that may be.
  bool went_well(Talk& talk, const Status& status) {
    if (status.code() == Code::kCancelled) {
      EXPECT_TRUE(std::exchange(talk.may_be_cancelled, false)) << status.message();
    } else if (status.code() == Code::kPoolExhausted) {
      EXPECT_TRUE(tight_) << status.message();
    } else {
      EXPECT_TRUE(status.ok()) << status.message();
    }
    return status.ok();
  }
  /// Takes what the session holds: what it was asked up to some token, at least `least`.
  void take_tokens(Talk& talk, const Tokens& whole, size_t least) {
    talk.tokens = tokens_of(*talk.session);
    ASSERT_GE(talk.tokens.size(), least);
    ASSERT_LE(talk.tokens.size(), whole.size());
    EXPECT_EQ(talk.tokens, first(whole, talk.tokens.size()));
    EXPECT_EQ(talk.session->length(), static_cast<int32_t>(talk.tokens.size()));
    EXPECT_LE(talk.session->cache().length(), talk.session->length());
  }

  void append(Talk& talk) {
    const Tokens more = prompt();
    const Status status = talk.session->append({.tokens = more});
    const Tokens whole = join(talk.tokens, more);
    if (whole.size() > kFormsContext) {
      EXPECT_EQ(status.code(), Code::kContextFull);
      return take_tokens(talk, talk.tokens, talk.tokens.size());
    }
    const bool well = went_well(talk, status);
    const bool part = status.code() == Code::kCancelled;
    take_tokens(talk, part ? whole : well ? whole : talk.tokens,
                well ? whole.size() : talk.tokens.size());
  }

  void score(Talk& talk) {
    const Tokens more = prompt();
    std::vector<float> scores;
    const Status status = talk.session->score({.tokens = more}, &scores, nullptr);
    if (talk.tokens.size() + more.size() > kFormsContext) {
      EXPECT_EQ(status.code(), Code::kContextFull);
    } else if (went_well(talk, status)) {
      EXPECT_EQ(scores.size(), more.size());
    }
    take_tokens(talk, talk.tokens, talk.tokens.size());
  }

  /// Whether a call may begin with this prompt; if not, it must be refused.
  bool may_begin(const Talk& talk, const Tokens& more) const {
    const size_t length = talk.tokens.size() + more.size();
    return length > 0 && length <= kFormsContext;
  }

  void generate(Talk& talk) {
    const Tokens more = prompt();
    const int32_t n = draw(random_, 1, 9);
    int32_t stop_at = draw(random_, 0, 2) == 0 ? draw(random_, 0, n) : -1;
    const auto stop = [](void* user, const Event& event) -> int32_t {
      return !event.done && event.index == *static_cast<int32_t*>(user) ? 5 : 0;
    };
    if (may_begin(talk, more)) expect(join(talk.tokens, more), n);
    std::optional<GenResult> result;
    const Status status =
        talk.session->generate({.tokens = more}, params(n), stop, &stop_at, &result);
    ASSERT_EQ(result.has_value(), may_begin(talk, more)) << status.message();
    if (!result.has_value()) return;
    const Said expected = fresh_.say(join(talk.tokens, more), n);
    if (result->user_code == 5) {
      EXPECT_EQ(result->tokens, first(expected.tokens, static_cast<size_t>(stop_at) + 1));
    } else if (went_well(talk, status)) {
      EXPECT_EQ((Said{.tokens = result->tokens, .logprobs = result->logprobs}), expected);
    } else if (status.code() != Code::kCancelled) {
      return take_tokens(talk, talk.tokens, talk.tokens.size());
    }
    const Tokens whole = join(join(talk.tokens, more), result->tokens);
    take_tokens(talk, whole, result->tokens.empty() ? talk.tokens.size() : whole.size());
  }

  void open(Talk& talk) {
    const Tokens more = prompt();
    const int32_t n = draw(random_, 1, 12);
    if (may_begin(talk, more)) expect(join(talk.tokens, more), n);
    auto opened = talk.session->open({.tokens = more}, params(n));
    ASSERT_EQ(opened.ok(), may_begin(talk, more)) << opened.status().message();
    if (!opened.ok()) return;
    talk.stream = std::move(opened).value();
    talk.asked = join(talk.tokens, more);
    talk.said = fresh_.say(talk.asked, n);
    talk.given = 0;
  }

  void pull(Talk& talk) {
    if (talk.stream->ended()) return close(talk);
    for (int32_t n = draw(random_, 1, 4); n > 0 && talk.stream != nullptr; --n) {
      // next() waits for blocks that only this thread could give back.
      const bool waits = !tight_ && draw(random_, 0, 3) == 0;
      const Event* const event = waits ? talk.stream->next().value() : talk.stream->poll();
      if (event == nullptr) continue;
      if (event->done) {
        const Status status = talk.stream->result().status;
        if (went_well(talk, status)) {
          EXPECT_EQ(talk.given, talk.said.tokens.size());
        }
        return draw(random_, 0, 1) == 0 ? close(talk) : void();
      }
      ASSERT_LT(talk.given, talk.said.tokens.size());
      EXPECT_EQ(event->token, talk.said.tokens[talk.given]);
      EXPECT_EQ(event->logprob, talk.said.logprobs[talk.given]);
      ++talk.given;
    }
  }

  void close(Talk& talk) {
    if (talk.stream == nullptr) return;
    const bool failed = talk.stream->ended() &&
                        talk.stream->result().finish_reason == FinishReason::kError;
    talk.stream.reset();
    if (failed) return take_tokens(talk, talk.tokens, talk.tokens.size());
    const Tokens whole = join(talk.asked, first(talk.said.tokens, talk.given));
    take_tokens(talk, whole, talk.given == 0 ? talk.tokens.size() : whole.size());
  }

  void cancel(Talk& talk) {
    talk.session->cancel();
    talk.may_be_cancelled = true;
  }

  void expect_busy(Talk& talk) {
    std::vector<float> scores;
    EXPECT_EQ(talk.session->append({.tokens = Tokens{3}}).code(), Code::kBusy);
    EXPECT_EQ(talk.session->score({.tokens = Tokens{3}}, &scores, nullptr).code(), Code::kBusy);
    EXPECT_EQ(talk.session->truncate(0).code(), Code::kBusy);
    EXPECT_EQ(talk.session->reset().code(), Code::kBusy);
    EXPECT_EQ(talk.session->fork().status().code(), Code::kBusy);
    EXPECT_EQ(talk.session->open({.tokens = Tokens{3}}, params(1)).status().code(), Code::kBusy);
  }

  /// The session goes, and perhaps its stream after it.
  void free(Talk& talk) {
    talk.session.reset();
    if (talk.stream != nullptr && !talk.stream->ended()) (void)talk.stream->poll();
    talk.stream.reset();
    talks_.erase(talks_.begin() + (&talk - talks_.data()));
  }

  void truncate(Talk& talk) {
    const int32_t n = draw(random_, 0, static_cast<int32_t>(talk.tokens.size()) + 1);
    ASSERT_TRUE(talk.session->truncate(n).ok());
    const size_t left = std::min(talk.tokens.size(), static_cast<size_t>(n));
    take_tokens(talk, first(talk.tokens, left), left);
  }

  void reset(Talk& talk) {
    ASSERT_TRUE(talk.session->reset().ok());
    EXPECT_EQ(talk.session->cache().length(), 0);
    talk.tokens.clear();
    talk.may_be_cancelled = false;
  }

  void fork(Talk& talk) {
    if (talks_.size() >= 6) return;
    auto forked = talk.session->fork();
    if (!went_well(talk, forked.status())) return;
    Talk made{.session = std::move(forked).value(), .tokens = talk.tokens};
    take_tokens(made, talk.tokens, talk.tokens.size());
    talks_.push_back(std::move(made));
  }

  void save(Talk& talk) {
    auto loaded = generator_->new_session().value();
    if (!went_well(talk, loaded->load(state_of(*talk.session)))) return;
    talk.session = std::move(loaded);
    talk.may_be_cancelled = false;
    take_tokens(talk, talk.tokens, talk.tokens.size());
  }

  /// What comes next must be what a fresh session says; the session itself stays as it is.
  void probe(Talk& talk) {
    if (talk.tokens.empty() || talk.tokens.size() + 3 > kFormsContext) return;
    auto forked = talk.session->fork();
    if (!went_well(talk, forked.status())) return;
    const Said said = say(**forked, {}, 3);
    if (!tight_ || said.status.ok()) {
      EXPECT_EQ(said, fresh_.say(talk.tokens, 3));
    }
  }

  /// A batch beside all that is open; some of it is cancelled on the way, begun or not.
  void batch() {
    const auto count = static_cast<size_t>(draw(random_, 1, 4));
    struct Order {
      std::vector<std::shared_ptr<CancelFlag>> cancels;
      Random* random;
    } order{{}, &random_};
    std::vector<Tokens> prompts;
    std::vector<BatchRequest> requests(count);
    for (size_t i = 0; i < count; ++i) {
      prompts.push_back(join(Tokens{4}, prompt()));
      order.cancels.push_back(std::make_shared<CancelFlag>());
    }
    for (size_t i = 0; i < count; ++i) {
      requests[i].prompt.tokens = prompts[i];
      requests[i].params = params(5);
      requests[i].params.cancel = order.cancels[i];
      requests[i].urgency.priority = draw(random_, -1, 1);
    }
    const auto act = [](void* user, size_t, const Event&) -> int32_t {
      const Order& all = *static_cast<Order*>(user);
      if (draw(*all.random, 0, 9) != 0) return 0;
      all.cancels[(*all.random)() % all.cancels.size()]->fire();
      return 0;
    };
    const auto results = run_batch(*generator_, requests, act, &order);
    for (size_t i = 0; i < count; ++i) {
      const Said expected = fresh_.say(prompts[i], 5);
      const Status& status = results[i].status;
      EXPECT_LE(results[i].tokens.size(), expected.tokens.size());
      EXPECT_EQ(results[i].tokens, first(expected.tokens, results[i].tokens.size()));
      if (status.ok()) {
        EXPECT_EQ(results[i].tokens.size(), expected.tokens.size());
      } else if (status.code() == Code::kCancelled) {
        EXPECT_TRUE(order.cancels[i]->raised());
      } else {
        EXPECT_TRUE(tight_ && status.code() == Code::kPoolExhausted) << status.message();
      }
    }
  }

  Random random_;
  bool tight_;
  const FreshSessions& fresh_;
  int32_t kind_;
  std::shared_ptr<KnowingDrafter> knowing_;
  std::shared_ptr<Drafter> drafter_;
  std::shared_ptr<const Generator> generator_;
  std::vector<Talk> talks_;
};

int trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::max(1, std::atoi(wanted)) : 150;
}

std::vector<CacheForm> forms() {
  std::vector<CacheForm> all = all_cache_forms();
  for (const int32_t prefixes : {0, 20}) {
    all.push_back({.layout = CacheForm::Layout::kPaged,
                   .block_size = 8,
                   .prefix_blocks = prefixes,
                   .pool_blocks = 30});
  }
  return all;
}

TEST(SessionProperty, WhateverHappenedASessionSaysWhatAFreshOneSays) {
  const std::vector<CacheForm> all = forms();
  std::vector<std::unique_ptr<FreshSessions>> fresh;
  for (const CacheForm& form : all) fresh.push_back(std::make_unique<FreshSessions>(form));
  for (int trial = 0; trial < trials(); ++trial) {
    const size_t which = static_cast<size_t>(trial) % all.size();
    SCOPED_TRACE(testing::Message() << "program " << trial << ", " << all[which]);
    Program program(Random(static_cast<uint32_t>(trial * 7919 + 13)), all[which], *fresh[which]);
    program.run(60);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace gen::generate
