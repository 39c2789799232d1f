// SPDX-License-Identifier: Apache-2.0
// Random programs over sessions, in every form of cache: prompts are appended, scored, generated
// and streamed; streams of several sessions are pulled and looked at in turns, and closed,
// cancelled or freed at any moment; sessions are cut, emptied, forked, saved and loaded between all
// that, and batches run beside them, in two of three programs with drafts: of one who knows what is
// right and says so more or less often, of lookups, of another model or the same, and of the first
// layers; as much as there is, as the window of outcomes has it, or as a clock has it that goes as
// it likes. Each call draws in a manner of its own: temperature, cuts, penalties, Gumbel noise,
// log- probabilities, ends, grammars. It has no adapter, one, two or an activated one, whose names
// get other meanings or none while calls run. Whatever happened, what a session says must be what a
// fresh one says that is given its tokens and adapters, to the bit. GEN_TRIALS sets the number of
// programs; how many there were, of calls and of guesses, is printed.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <tuple>

#include "generate/batch_run.h"
#include "generate/cache_forms.h"
#include "generate/draft/drafter_list.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/draft/suffix_lookup.h"
#include "generate/drawn_adapters.h"
#include "generate/knowing_drafter.h"
#include "generate/small_drafter.h"
#include "grammar/grammar.h"
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
  int64_t adapted = 0;  // of them
  int64_t parted = 0;   // of these, whose adapter is not for all rows
  int64_t refused = 0;  // because there is no adapter of a name
  int64_t drafted = 0;
  int64_t accepted = 0;
};

/// All that a call says.
struct Told {
  Said said = {};
  std::string text = {};
  FinishReason reason = FinishReason::kNone;
  std::vector<int32_t> top = {};  // the likeliest tokens beside each
  Tokens held = {};               // by the session afterwards

  static Told of(const GenResult& result, Tokens held) {
    return {{result.status, result.tokens, result.logprobs, 0},
            result.text,
            result.finish_reason,
            result.top_ids,
            std::move(held)};
  }
  friend bool operator==(const Told& a, const Told& b) {
    return a.said == b.said &&
           std::tie(a.text, a.reason, a.top, a.held) == std::tie(b.text, b.reason, b.top, b.held);
  }
  friend std::ostream& operator<<(std::ostream& out, const Told& told) {
    return out << told.said << told.text << " " << static_cast<int32_t>(told.reason)
               << testing::PrintToString(told.held);
  }
};

constexpr int32_t kManners = 48;

/// How a call draws and where it ends; the same for the same number.
CallParams params_in(int32_t manner, int32_t n) {
  Random random(static_cast<uint32_t>(manner) * 2654435761U + 5);
  static const std::shared_ptr<const grammar::Grammar> grammars[] = {
      grammar::Grammar::from_regex("([a-k]{1,3}[l-z])*").value(),
      grammar::Grammar::from_regex("[a-z]{3}[f-t]{2,5}").value()};
  CallParams params = params_of(n);
  sampling::SamplingParams& sampling = params.sampling;
  const auto one_of = [&random](int32_t many) { return draw(random, 0, many - 1) == 0; };
  sampling.seed = static_cast<uint64_t>(manner);
  sampling.temperature = one_of(3) ? 0.0 : one_of(2) ? 0.7 : 1.3;
  sampling.gumbel = one_of(3);
  sampling.logprobs = draw(random, -1, 3);
  if (one_of(2)) sampling.repetition_penalty = 1.2;
  sampling.penalize_prompt = one_of(2);
  if (one_of(4)) sampling.frequency_penalty = 0.4;
  if (one_of(4)) sampling.penalty_window = 7;
  if (one_of(4)) sampling.top_k = 9;
  if (one_of(4)) sampling.top_p = 0.8;
  if (one_of(4)) sampling.min_p = 0.05;
  if (one_of(6)) sampling.typical_p = 0.7;
  if (one_of(6)) sampling.dry_multiplier = 1.5;
  sampling.dry_allowed_length = 1;
  if (one_of(6)) sampling.mirostat_tau = 2.0;
  if (one_of(6)) sampling.xtc_probability = 0.4;
  if (one_of(6)) sampling.top_n_sigma = 2.0;
  if (one_of(6)) sampling.logit_bias.push_back({draw(random, 2, 40), 3.0F});
  if (one_of(4)) params.stops.strings = {"xa", "c", "mno"};
  if (one_of(4)) params.stops.tokens = {draw(random, 2, kFormsVocab - 1)};
  params.stops.ignore_eos = !one_of(4);
  if (one_of(6)) params.stops.min_new_tokens = 3;
  if (one_of(4)) {
    params.grammar = grammars[draw(random, 0, 1)];
    params.stops.fit_grammar = one_of(2);
  }
  return params;
}

/// How much is guessed. The clock goes by its own draws, so that it is the same each time.
DraftPolicy policy_of(Random* random) {
  DraftPolicy policy;
  policy.kind = static_cast<DraftPolicy::Kind>(draw(*random, 0, 2));
  policy.probe_tokens = draw(*random, 1, 64);
  policy.clock = [ticks = Random((*random)()), now = 0.0]() mutable {
    return now += 0.001 * draw(ticks, 1, 1000);
  };
  return policy;
}

std::shared_ptr<Drafter> layers_drafter(int32_t most, bool far) {
  const FormsPlace place = forms_place(far);
  ModelDrafter::Options options;
  options.most = most;
  options.vocab = kFormsVocab;
  options.context = kFormsContext;
  options.prompt_rows = 8;
  options.memory = &place.memory;
  return ModelDrafter::create(place.model.first_layers(1).value(), options).value();
}

/// A session, what it holds, and the stream that is open on it.
struct Talk {
  std::shared_ptr<Session> session;
  Tokens tokens = {};            // before the stream was opened
  AdapterChoices adapters = {};  // of its last call
  bool may_be_cancelled = false;
  bool may_owe_text = false;  // held back by a call that was ended, for a next one without a prompt
  std::unique_ptr<Generation> stream = nullptr;
  Tokens asked = {};      // tokens and the stream's prompt
  Told told = {};         // what it should say
  size_t given = 0;       // of its tokens
  std::string text = {};  // that came with them
};

class Program {
 public:
  Program(Random random, const CacheForm& form, const FreshSessions& fresh, DrawnAdapters* adapters,
          Counts* counts)
      : random_(random),
        tight_(form.pool_blocks > 0),
        fresh_(fresh),
        adapters_(*adapters),
        counts_(*counts),
        kind_(draw(random_, 0, 9)),
        knowing_(kind_ < 3 ? nullptr : knowing(random_)),
        drafter_(drafter(form.far)),
        generator_(generator_of(form, draw(random_, 1, 12), draw(random_, 1, 6), drafter_,
                                policy_of(&random_))) {
    adapters_.restart(random_);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(testing::Message() << "step " << i);
      step();
    }
    for (Talk& talk : talks_) close(talk);
    for (Talk& talk : talks_) probe(talk);
    counts_.drafted += generator_->draft_use().drafted;
    counts_.accepted += generator_->draft_use().accepted;
  }

 private:
  std::shared_ptr<Drafter> drafter(bool far) {
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
        return std::make_shared<DrafterList>(suffix, small_drafter(most, true, 9));
      case 8:
        return layers_drafter(most, far);
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
  Told expect(const Tokens& asked, const CallParams& params) {
    count(params.adapters, asked);
    const auto session = fresh_.session();
    std::optional<GenResult> result;
    static_cast<void>(
        session->generate({.text = {}, .tokens = asked}, params, nullptr, nullptr, &result));
    EXPECT_TRUE(result.has_value());
    if (!result.has_value()) return {};
    EXPECT_TRUE(result->status.ok()) << result->status.message();
    Told told = Told::of(*result, tokens_of(*session));
    if (knowing_ != nullptr) knowing_->learn(told.held);
    return told;
  }
  void count(const AdapterChoices& adapters, const Tokens& text) {
    ++counts_.calls;
    counts_.adapted += adapters.empty() ? 0 : 1;
    size_t from = 0;
    counts_.parted += adapters_.mix_of(adapters, text, &from) != nullptr && from > 0 ? 1 : 0;
  }
  CallParams any_params(int32_t n, AdapterChoices adapters) {
    CallParams params = params_in(draw(random_, 0, kManners - 1), n);
    params.adapters = std::move(adapters);
    return params;
  }
  /// Every other time those of the last call, whatever their names mean now.
  const AdapterChoices& any_adapters(Talk& talk) {
    if (draw(random_, 0, 1) == 0) talk.adapters = DrawnAdapters::any(random_);
    return talk.adapters;
  }

  void step() {
    if (talks_.empty() || (talks_.size() < 5 && draw(random_, 0, 9) == 0)) {
      talks_.push_back({.session = generator_->new_session().value()});
    }
    if (draw(random_, 0, 7) == 0) adapters_.change(random_);
    Talk& talk =
        talks_[static_cast<size_t>(draw(random_, 0, static_cast<int32_t>(talks_.size()) - 1))];
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

  Tokens prompt() {
    const Tokens text = text_of(static_cast<uint32_t>(draw(random_, 1, 6)),
                                static_cast<size_t>(draw(random_, 0, 20)));
    if (draw(random_, 0, 3) != 0) return text;
    const Tokens invocation = DrawnAdapters::invocation(random_);
    return draw(random_, 0, 1) == 0 ? join(text, invocation) : join(invocation, text);
  }
  /// The prompt of a call whose text must be a fresh session's.
  Tokens prompt_for(const Talk& talk) {
    const Tokens text = prompt();
    return talk.may_owe_text && text.empty() ? Tokens{3} : text;
  }
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
    take_tokens(talk,
                part   ? whole
                : well ? whole
                       : talk.tokens,
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

  /// Whether a call may begin with this prompt and these adapters; if not, it must be refused.
  bool may_begin(const Talk& talk, const Tokens& more, const AdapterChoices& adapters) const {
    const size_t length = talk.tokens.size() + more.size();
    return length > 0 && length <= kFormsContext && adapters_.known(adapters);
  }
  /// A refused call has changed nothing.
  void refused(Talk& talk, const AdapterChoices& adapters) {
    counts_.refused += adapters_.known(adapters) ? 0 : 1;
    take_tokens(talk, talk.tokens, talk.tokens.size());
  }

  void generate(Talk& talk) {
    const Tokens more = prompt_for(talk);
    const int32_t n = draw(random_, 1, 9);
    int32_t stop_at = draw(random_, 0, 2) == 0 ? draw(random_, 0, n) : -1;
    const auto stop = [](void* user, const Event& event) -> int32_t {
      return !event.done && event.index == *static_cast<int32_t*>(user) ? 5 : 0;
    };
    const CallParams drawn = any_params(n, any_adapters(talk));
    const bool begins = may_begin(talk, more, drawn.adapters);
    Told expected;
    if (begins) expected = expect(join(talk.tokens, more), drawn);
    std::optional<GenResult> result;
    const Status status = talk.session->generate({.tokens = more}, drawn, stop, &stop_at, &result);
    ASSERT_EQ(result.has_value(), begins) << status.message();
    if (!begins) return refused(talk, drawn.adapters);
    if (result->user_code == 5) {
      EXPECT_EQ(result->tokens, first(expected.said.tokens, static_cast<size_t>(stop_at) + 1));
    } else if (went_well(talk, status)) {
      EXPECT_EQ(Told::of(*result, tokens_of(*talk.session)), expected);
      talk.may_owe_text = false;
      return take_tokens(talk, expected.held, expected.held.size());
    } else if (status.code() != Code::kCancelled) {
      return take_tokens(talk, talk.tokens, talk.tokens.size());
    }
    talk.may_owe_text = talk.may_owe_text || !drawn.stops.strings.empty();
    const Tokens whole = join(join(talk.tokens, more), result->tokens);
    take_tokens(talk, whole, result->tokens.empty() ? talk.tokens.size() : whole.size());
  }

  void open(Talk& talk) {
    const Tokens more = prompt_for(talk);
    const int32_t n = draw(random_, 1, 12);
    const CallParams drawn = any_params(n, any_adapters(talk));
    const bool begins = may_begin(talk, more, drawn.adapters);
    Told expected;
    if (begins) expected = expect(join(talk.tokens, more), drawn);
    auto opened = talk.session->open({.tokens = more}, drawn);
    ASSERT_EQ(opened.ok(), begins) << opened.status().message();
    if (!begins) return refused(talk, drawn.adapters);
    talk.stream = std::move(opened).value();
    talk.may_owe_text = talk.may_owe_text || !drawn.stops.strings.empty();
    talk.asked = join(talk.tokens, more);
    talk.told = std::move(expected);
    talk.given = 0;
    talk.text.clear();
  }

  void pull(Talk& talk) {
    if (talk.stream->ended()) return close(talk);
    for (int32_t n = draw(random_, 1, 4); n > 0 && talk.stream != nullptr; --n) {
      // next() waits for blocks that only this thread could give back.
      const bool waits = !tight_ && draw(random_, 0, 3) == 0;
      const Event* const event = waits ? talk.stream->next().value() : talk.stream->poll();
      if (event == nullptr) continue;
      if (event->done) {
        const GenResult& result = talk.stream->result();
        if (went_well(talk, result.status)) {
          EXPECT_EQ(talk.given, talk.told.said.tokens.size());
          EXPECT_EQ(talk.text.append(event->text), talk.told.text);
          EXPECT_EQ(Told::of(result, talk.told.held), talk.told);
        }
        return draw(random_, 0, 1) == 0 ? close(talk) : void();
      }
      const Said& said = talk.told.said;
      ASSERT_LT(talk.given, said.tokens.size());
      EXPECT_EQ(event->token, said.tokens[talk.given]);
      if (!said.logprobs.empty()) {
        EXPECT_EQ(event->logprob, said.logprobs[talk.given]);
      }
      talk.text.append(event->text);
      ++talk.given;
    }
  }

  void close(Talk& talk) {
    if (talk.stream == nullptr) return;
    const bool failed =
        talk.stream->ended() && talk.stream->result().finish_reason == FinishReason::kError;
    const bool whole_text = talk.stream->ended() && talk.stream->result().status.ok();
    talk.stream.reset();
    if (failed) return take_tokens(talk, talk.tokens, talk.tokens.size());
    if (whole_text) {
      talk.may_owe_text = false;
      return take_tokens(talk, talk.told.held, talk.told.held.size());
    }
    const Tokens whole = join(talk.asked, first(talk.told.said.tokens, talk.given));
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
    Talk made{.session = std::move(forked).value(),
              .tokens = talk.tokens,
              .adapters = talk.adapters,
              .may_owe_text = talk.may_owe_text};
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
    const bool same = draw(random_, 0, 1) == 0 && adapters_.known(talk.adapters);
    const AdapterChoices adapters = same ? talk.adapters : adapters_.any_known(random_);
    const Said said = say(**forked, {}, 3, adapters);
    if (!tight_ || said.status.ok()) {
      EXPECT_EQ(said, fresh_.say(talk.tokens, 3, adapters));
    }
    count(adapters, talk.tokens);
  }

  /// A batch beside all that is open; some of it is cancelled on the way, begun or not.
  void batch() {
    const auto count = static_cast<size_t>(draw(random_, 1, 4));
    struct Order {
      std::vector<std::shared_ptr<CancelFlag>> cancels;
      Random* random;
    } order{{}, &random_};
    std::vector<Tokens> prompts;
    std::vector<Told> expected;
    std::vector<BatchRequest> requests(count);
    for (size_t i = 0; i < count; ++i) {
      prompts.push_back(join(Tokens{4}, prompt()));
      order.cancels.push_back(std::make_shared<CancelFlag>());
    }
    for (size_t i = 0; i < count; ++i) {
      requests[i].prompt.tokens = prompts[i];
      requests[i].params = any_params(5, adapters_.any_known(random_));
      expected.push_back(expect(prompts[i], requests[i].params));
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
      const Status& status = results[i].status;
      const Tokens& said = expected[i].said.tokens;
      ASSERT_LE(results[i].tokens.size(), said.size());
      EXPECT_EQ(results[i].tokens, first(said, results[i].tokens.size()));
      if (status.ok()) {
        EXPECT_EQ(Told::of(results[i], expected[i].held), expected[i]);
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
  DrawnAdapters& adapters_;
  Counts& counts_;
  int32_t kind_;
  std::shared_ptr<KnowingDrafter> knowing_;
  std::shared_ptr<Drafter> drafter_;
  std::shared_ptr<const Generator> generator_;
  std::vector<Talk> talks_;
};

int trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::max(1, std::atoi(wanted)) : test::fewer(150);
}

std::vector<CacheForm> forms() {
  std::vector<CacheForm> all = all_cache_forms();
  for (const int32_t prefixes : {0, 20}) {
    all.push_back({.layout = CacheForm::Layout::kPaged,
                   .block_size = 8,
                   .prefix_blocks = prefixes,
                   .pool_blocks = 30});
  }
  // The first one, for those who have time for no more.
  all.insert(all.begin(), CacheForm{.window = true});
#ifndef GEN_FORMS_CUDA
  all.push_back({.kind = "q4", .window = true});
  using Layout = CacheForm::Layout;
  all.push_back({.layout = Layout::kPaged, .block_size = 7, .window = true});
  all.push_back({.layout = Layout::kPaged, .block_size = 4, .prefix_blocks = 40, .window = true});
  all.push_back({.kind = "q4",
                 .layout = Layout::kPaged,
                 .block_size = 8,
                 .prefix_blocks = 12,
                 .pool_blocks = 60,
                 .window = true});
  all.push_back({.recurrent = true});
  for (const auto& [prefixes, pool] : {std::pair{40, 0}, std::pair{0, 30}, std::pair{20, 30}}) {
    all.push_back({.layout = CacheForm::Layout::kPaged,
                   .block_size = 8,
                   .prefix_blocks = prefixes,
                   .pool_blocks = pool,
                   .recurrent = true});
  }
#endif
  return all;
}

TEST(SessionProperty, WhateverHappenedASessionSaysWhatAFreshOneSays) {
  const std::vector<CacheForm> all = forms();
  std::vector<std::unique_ptr<FreshSessions>> fresh;
  std::set<const model::Model*> models;
  for (const CacheForm& form : all) {
    fresh.push_back(std::make_unique<FreshSessions>(form));
    models.insert({&forms_place(form.far, form.recurrent, form.window).model,
                   &forms_place(false, form.recurrent, form.window).model});
  }
  DrawnAdapters adapters(models);
  Counts counts;
  for (int trial = 0; trial < trials(); ++trial) {
    const size_t which = static_cast<size_t>(trial) % all.size();
    SCOPED_TRACE(testing::Message() << "program " << trial << ", " << all[which]);
    Program program(Random(static_cast<uint32_t>(trial * 7919 + 13)), all[which], *fresh[which],
                    &adapters, &counts);
    program.run(60);
    if (HasFailure()) return;
  }
  // A few programs may have guessed nothing right.
  if (trials() >= 10) {
    EXPECT_GT(counts.accepted, trials());
    EXPECT_GT(counts.parted, trials());
    EXPECT_GT(counts.refused, trials() / 10);
  }
  const auto number = [](int64_t n) { return static_cast<long long>(n); };
  std::printf(
      "%d programs, %lld calls compared, %lld with adapters, %lld with rows before the adapter's, "
      "%lld refused, %lld tokens guessed, %lld of them right\n",
      trials(), number(counts.calls), number(counts.adapted), number(counts.parted),
      number(counts.refused), number(counts.drafted), number(counts.accepted));
}

}  // namespace
}  // namespace gen::generate
