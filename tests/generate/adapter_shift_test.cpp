// SPDX-License-Identifier: Apache-2.0
// Adapters where contexts are full: random programs of sessions that drop their oldest tokens,
// whose calls have no adapter, one, two or an activated one, and whose names get other meanings
// meanwhile. Entries that a shift turned are not those of a fresh evaluation, so each session has a
// twin that gets the same calls alone, undrafted and in one piece; both say the same, to the bit.
// A call whose adapters or whose cache make all entries anew says what a fresh session says.
// GEN_TRIALS sets the number of programs.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>

#include "generate/draft/ngram_lookup.h"
#include "generate/drawn_adapters.h"
#include "generate/small_drafter.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

using Random = std::mt19937;

int32_t draw(Random& random, int32_t from, int32_t to) {
  return from + static_cast<int32_t>(random() % static_cast<uint32_t>(to - from + 1));
}

/// What was compared.
struct Counts {
  int64_t calls = 0;
  int64_t fresh = 0;    // of them, with a fresh session, too
  int64_t anew = 0;     // of these, after a shift
  int64_t shifts = 0;   // calls that dropped tokens
  int64_t adapted = 0;  // of them
  int64_t moved = 0;    // of these, where an activated adapter stays
  int64_t cut = 0;      // streams that ended early
};

/// What a session says and holds.
struct Told {
  Said said;
  int64_t dropped = 0;
  Tokens held;

  static Told of(const GenResult& result, const Session& session) {
    return {
        {result.status, result.tokens, result.logprobs}, result.usage.dropped, tokens_of(session)};
  }
  friend bool operator==(const Told& a, const Told& b) {
    return a.said == b.said && a.dropped == b.dropped && a.held == b.held;
  }
  friend std::ostream& operator<<(std::ostream& out, const Told& told) {
    return out << told.said << " dropped " << told.dropped << " held "
               << testing::PrintToString(told.held);
  }
};

/// Runs a call, stopped after token `last`; -1: whole.
Told tell(Session& session, const Tokens& prompt, const CallParams& params, int32_t last = -1) {
  const auto stop = [](void* user, const Event& event) -> int32_t {
    return !event.done && event.index == *static_cast<int32_t*>(user) ? 5 : 0;
  };
  std::optional<GenResult> result;
  const Status status = session.generate({.tokens = prompt}, params, stop, &last, &result);
  EXPECT_TRUE(result.has_value()) << status.message();
  return result.has_value() ? Told::of(*result, session) : Told();
}

/// A session, its twin and the stream that is open on it.
struct Talk {
  std::shared_ptr<Session> session;
  std::shared_ptr<Session> twin;
  // Which mix made the entries, if that is known, and whether a fresh evaluation makes the same.
  std::shared_ptr<const model::AdapterMix> made = nullptr;
  bool known = true;
  bool genuine = true;
  std::unique_ptr<Generation> stream = nullptr;
  AdapterChoices adapters = {};  // of its last call
  Told told = {};                // what the stream should say
  int32_t last = -1;  // the token after which it is ended, which the twin said, too; -1: none
  int32_t given = 0;
};

class Program {
 public:
  Program(Random random, const CacheForm& form, DrawnAdapters* adapters, Counts* counts)
      : random_(random),
        tight_(form.pool_blocks > 0),
        turns_(form.layout == CacheForm::Layout::kPlain),
        adapters_(*adapters),
        counts_(*counts) {
    const int32_t keep = draw(random_, 0, 12);
    generator_ = generator_of(form, draw(random_, 1, 12), draw(random_, 1, 4), drafter(), {}, keep);
    CacheForm alone = form;
    alone.prefix_blocks = alone.pool_blocks = 0;
    twins_ = generator_of(alone, kFormsContext, 1, nullptr, {}, keep);
    adapters_.restart(random_);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(testing::Message() << "step " << i);
      step();
    }
    for (Talk& talk : talks_) {
      while (talk.stream != nullptr && !tight_ && !testing::Test::HasFailure()) pull(talk);
    }
  }

 private:
  std::shared_ptr<Drafter> drafter() {
    const int32_t most = draw(random_, 1, 8);
    switch (draw(random_, 0, 2)) {
      case 0:
        return nullptr;
      case 1:
        return std::make_shared<NgramLookup>(draw(random_, 1, 3), most);
      default:
        return small_drafter(most, draw(random_, 0, 1) == 0);
    }
  }

  void step() {
    if (draw(random_, 0, 7) == 0) adapters_.change(random_);
    if (talks_.empty() || (talks_.size() < 3 && draw(random_, 0, 5) == 0)) {
      talks_.push_back({generator_->new_session().value(), twins_->new_session().value()});
    }
    const size_t at = random_() % talks_.size();
    Talk& talk = talks_[at];
    if (talk.stream != nullptr) {
      pull(talk);
    } else {
      switch (draw(random_, 0, 7)) {
        case 0:
          append(talk);
          break;
        case 1:
          truncate(talk);
          break;
        case 2:
          fork(talk);
          break;
        case 3:
          reload(talk);
          break;
        default:
          open(talk);
      }
    }
    if (talks_[at].session == nullptr) talks_.erase(talks_.begin() + static_cast<int32_t>(at));
  }

  Tokens prompt() {
    const Tokens text = text_of(static_cast<uint32_t>(draw(random_, 1, 4)),
                                static_cast<size_t>(draw(random_, 1, 45)));
    return draw(random_, 0, 2) == 0 ? join(text, DrawnAdapters::invocation(random_)) : text;
  }

  /// The session goes: the pool was too small for it, or its stream was ahead of what it told.
  static void leave(Talk& talk) { talk = {}; }

  void append(Talk& talk) {
    const Tokens more = prompt();
    const size_t fits = tokens_of(*talk.session).size() + more.size();
    const Status status = talk.session->append({.tokens = more});
    if (tight_ && status.code() == Code::kPoolExhausted) return leave(talk);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(talk.twin->append({.tokens = more}).ok());
    talk.genuine = !turns_ || (talk.genuine && fits <= kFormsContext);
    EXPECT_EQ(tokens_of(*talk.session), tokens_of(*talk.twin));
  }

  void truncate(Talk& talk) {
    const int32_t n = draw(random_, 0, talk.session->length());
    ASSERT_TRUE(talk.session->truncate(n).ok());
    ASSERT_TRUE(talk.twin->truncate(n).ok());
    talk.genuine = talk.genuine || n == 0;
  }

  void fork(Talk& talk) {
    if (talks_.size() >= 4) return;
    auto forked = talk.session->fork();
    if (tight_ && forked.status().code() == Code::kPoolExhausted) return;
    talks_.push_back({std::move(forked).value(), talk.twin->fork().value(), talk.made, talk.known,
                      talk.genuine});
  }

  void reload(Talk& talk) {
    auto loaded = generator_->new_session().value();
    const Status status = loaded->load(state_of(*talk.session));
    if (tight_ && status.code() == Code::kPoolExhausted) return;
    ASSERT_TRUE(status.ok()) << status.message();
    talk.session = std::move(loaded);
    auto twin = twins_->new_session().value();
    ASSERT_TRUE(twin->load(state_of(*talk.twin)).ok());
    talk.twin = std::move(twin);
    talk.known = false;  // a prompt appended now is evaluated without adapters
  }

  void open(Talk& talk) {
    const Tokens more = prompt();
    const int32_t n = draw(random_, 1, 40);
    CallParams params = params_of(n);
    params.sampling.temperature = draw(random_, 0, 1) * 0.9;
    params.sampling.repetition_penalty = draw(random_, 0, 2) == 0 ? 1.3 : 1.0;
    if (draw(random_, 0, 1) == 0 || !adapters_.known(talk.adapters)) {
      talk.adapters = adapters_.any_known(random_);
    }
    params.adapters = talk.adapters;
    talk.last = draw(random_, 0, 2) == 0 ? draw(random_, 0, n - 1) : -1;
    const Tokens whole = join(tokens_of(*talk.twin), more);
    if (talk.last < 0) {
      talk.told = tell(*talk.twin, more, params);
    } else {  // names may have other meanings by then
      talk.told = tell(*talk.twin->fork().value(), more, params);
      static_cast<void>(tell(*talk.twin, more, params, talk.last));
    }
    expect_last(talk, whole, params);
    expect_fresh(talk, whole, params);
    auto opened = talk.session->open({.tokens = more}, params);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    talk.stream = std::move(opened).value();
    talk.given = 0;
  }

  /// Compares what the twin says with a fresh session, if that has the same entries.
  void expect_fresh(Talk& talk, const Tokens& whole, const CallParams& params) {
    const auto mix = adapters_.mix_of(params.adapters, whole);
    const auto full = [](const auto& of) { return of != nullptr && of->invocation_tokens.empty(); };
    const auto identity = [](const auto& of) { return of != nullptr ? of->identity : 0; };
    const bool fits = whole.size() <= kFormsContext;
    const bool anew =
        talk.known && identity(mix) != identity(talk.made) && (full(mix) || full(talk.made));
    const bool comparable = fits && (anew || talk.genuine);
    if (comparable) {
      EXPECT_EQ(tell(*twins_->new_session().value(), whole, params), talk.told);
    }
    const bool shifts = talk.told.dropped > 0;
    ++counts_.calls;
    counts_.shifts += shifts ? 1 : 0;
    counts_.adapted += shifts && mix != nullptr ? 1 : 0;
    counts_.fresh += comparable ? 1 : 0;
    counts_.anew += comparable && !talk.genuine ? 1 : 0;
    talk.made = mix;
    // Which invocation tokens a prompt leaves in a full context is not followed.
    talk.known = fits || full(mix) || params.adapters.empty();
    talk.genuine = !turns_ || (comparable && !shifts);
  }

  /// Where the cache evaluates again, what comes last is what a fresh session says after the rest:
  /// a shift moves the first row of an activated adapter along with its tokens.
  void expect_last(const Talk& talk, const Tokens& whole, const CallParams& params) {
    const bool plain = params.sampling.temperature == 0 && params.sampling.repetition_penalty == 1;
    if (turns_ || !plain || talk.told.dropped == 0 || talk.told.said.tokens.empty()) return;
    const Tokens rest = first(talk.told.held, talk.told.held.size() - 1);
    size_t from = 0;
    size_t left = 0;
    const auto mix = adapters_.mix_of(params.adapters, whole, &from);
    const bool same =
        (adapters_.mix_of(params.adapters, rest, &left) == nullptr) == (mix == nullptr);
    // Text that was said may have activated it anew.
    const auto moved = static_cast<int64_t>(from) - talk.told.dropped;
    if (!same || (from > 0 && mix != nullptr && static_cast<int64_t>(left) != moved)) return;
    CallParams one = params;
    one.stops.max_new_tokens = 1;
    const Told last = tell(*twins_->new_session().value(), rest, one);
    ASSERT_EQ(last.said.tokens.size(), 1U);
    EXPECT_EQ(last.said.tokens.back(), talk.told.said.tokens.back());
    EXPECT_EQ(last.said.logprobs.back(), talk.told.said.logprobs.back());
    counts_.moved += mix != nullptr && from > 0 ? 1 : 0;
  }

  void pull(Talk& talk) {
    for (int32_t n = draw(random_, 1, 12); n > 0; --n) {
      // next() waits for blocks that only this thread could give back.
      const Event* const event = tight_ ? talk.stream->poll() : talk.stream->next().value();
      if (event == nullptr) continue;
      if (event->done) return ended(talk);
      const auto at = static_cast<size_t>(talk.given++);
      ASSERT_LT(at, talk.told.said.tokens.size());
      EXPECT_EQ(event->token, talk.told.said.tokens[at]);
      EXPECT_EQ(event->logprob, talk.told.said.logprobs[at]);
      if (talk.given == talk.last + 1) return cut(talk);
    }
  }

  void ended(Talk& talk) {
    const GenResult result = talk.stream->result();
    talk.stream.reset();
    if (tight_ && result.status.code() == Code::kPoolExhausted) return leave(talk);
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    EXPECT_EQ(Told::of(result, *talk.session), talk.told);
  }

  /// Closes a stream or cancels it first.
  void cut(Talk& talk) {
    ++counts_.cut;
    if (draw(random_, 0, 1) == 0) {
      talk.session->cancel();
      EXPECT_TRUE(talk.stream->next().value()->done);
    }
    talk.stream.reset();
    // It may have dropped tokens for one that it has not told.
    if (talk.session->length() < talk.twin->length()) return leave(talk);
    EXPECT_EQ(tokens_of(*talk.session), tokens_of(*talk.twin));
  }

  Random random_;
  bool tight_;
  bool turns_;  // what a shift leaves in the cache; other caches evaluate it again
  DrawnAdapters& adapters_;
  Counts& counts_;
  std::shared_ptr<const Generator> generator_;
  std::shared_ptr<const Generator> twins_;
  std::vector<Talk> talks_;
};

TEST(AdapterShift, WhateverHappenedASessionSaysWhatItsTwinSays) {
  using Layout = CacheForm::Layout;
  std::vector<CacheForm> forms;
  for (const char* kind : {"fp32", "fp16", "q4"}) forms.push_back({.kind = kind});
  forms.push_back({.kind = "fp16", .far = true});
  for (const auto& [prefixes, pool] : {std::pair{40, 0}, std::pair{0, 30}, std::pair{20, 30}}) {
    forms.push_back({.layout = Layout::kPaged,
                     .block_size = 8,
                     .prefix_blocks = prefixes,
                     .pool_blocks = pool});
  }
  forms.push_back({.layout = Layout::kCompressed, .block_size = 8});
  std::set<const model::Model*> models;
  for (const CacheForm& form : forms) models.insert(&forms_place(form.far).model);
  DrawnAdapters adapters(models);
  const char* const wanted = std::getenv("GEN_TRIALS");
  const int trials = wanted != nullptr ? std::max(1, std::atoi(wanted)) : test::fewer(30);
  Counts counts;
  for (int trial = 0; trial < trials; ++trial) {
    const CacheForm& form = forms[static_cast<size_t>(trial) % forms.size()];
    SCOPED_TRACE(testing::Message() << "program " << trial << ", " << form);
    Program program(Random(static_cast<uint32_t>(trial * 7919 + 17)), form, &adapters, &counts);
    program.run(50);
    if (HasFailure()) return;
  }
  if (trials >= 10) {
    EXPECT_GT(counts.adapted, trials);
    EXPECT_GT(counts.anew, trials / 4);
    EXPECT_GT(counts.moved, 0);
    EXPECT_GT(counts.cut, trials / 2);
  }
  const auto number = [](int64_t n) { return static_cast<long long>(n); };
  std::printf(
      "%d programs, %lld calls compared, %lld with fresh sessions, of these %lld after a shift; "
      "%lld shifted, %lld of them with adapters, %lld compared whose adapter begins later; %lld "
      "ended early\n",
      trials, number(counts.calls), number(counts.fresh), number(counts.anew),
      number(counts.shifts), number(counts.adapted), number(counts.moved), number(counts.cut));
}

}  // namespace
}  // namespace gen::generate
