// SPDX-License-Identifier: Apache-2.0
// Drafts for models of a caller's own whose state remembers all tokens: one that goes back, one
// that can only be copied, one that does both. Whatever was guessed, wherever it went wrong, and in
// every form of cache, what is said is what plain decoding says, to the bit. What copies cost is
// counted: one for each pass over drafts, where there is no going back, and none else.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/metrics_memory.h"
#include "base/rng.h"
#include "generate/cache_forms.h"
#include "generate/draft_choice.h"
#include "generate/request/metric_names.h"
#include "model/custom_model.h"
#include "support/cpu_engine.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

using model::CustomModel;
using model::CustomStates;

constexpr int32_t kContext = 120;
constexpr int32_t kHeads = 2;
constexpr int32_t kHeadDim = 32;

/// Says what depends on all tokens of its state, and on an attention over them whose keys and
/// values lie in the session's cache.
class Digest final : public model::CustomForward {
 public:
  ~Digest() override { EXPECT_EQ(live, 0); }

  Status forward(const graph::Batch& batch, std::span<void* const> states, float* /*features*/,
                 model::CustomAttention* attention) const override {
    if (++passes == fails_at) return error(Code::kIo, "no such luck");
    const auto rows = static_cast<size_t>(batch.rows());
    constexpr size_t kRow = size_t{kHeads} * kHeadDim;
    std::vector<uint64_t> digests(rows);
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      const graph::BatchSequence& sequence = batch.sequences[i];
      auto& state = *static_cast<Seen*>(states[i]);
      for (int32_t t = 0; t < sequence.n_rows; ++t) {
        const auto row = static_cast<size_t>(sequence.first_row + t);
        EXPECT_EQ(static_cast<size_t>(batch.positions[row]), state.digests.size());
        state.digests.push_back(
            mix(state.digests.empty() ? 7 : state.digests.back(), batch.tokens[row]));
        digests[row] = state.digests.back();
      }
    }
    std::vector<float> q(rows * kRow), k(rows * kRow), v(rows * kRow), out(rows * kRow);
    for (size_t i = 0; i < q.size(); ++i) {
      q[i] = number(digests[i / kRow], 3 * i % kRow);
      k[i] = number(digests[i / kRow], kRow + i % kRow);
      v[i] = number(digests[i / kRow], 2 * kRow + i % kRow);
    }
    GEN_TRY(attention->run(0, q.data(), k.data(), v.data(), 0.3F, out.data()));
    float* logits = batch.logits;
    for (size_t row = 0; row < rows; ++row) {
      if (batch.wants[row] == graph::kWantsNothing) continue;
      for (int32_t token = 0; token < kFormsVocab; ++token) {
        const auto at = static_cast<size_t>(token);
        *logits++ = 3 * number(digests[row], 900 + at) + out[row * kRow + at];
      }
    }
    if (after_forward) after_forward(batch);
    return {};
  }
  Result<void*> new_state() const override {
    ++live;
    return static_cast<void*>(new Seen);
  }
  Result<void*> clone_state(const void* state) const override {
    ++clones;
    if (refuses_clone) return error(Code::kOutOfMemory, "no room for a copy");
    ++live;
    return static_cast<void*>(new Seen(*static_cast<const Seen*>(state)));
  }
  Status truncate_state(void* state, int32_t n) const override {
    if (n == 0) ++emptied;
    auto& digests = static_cast<Seen*>(state)->digests;
    digests.resize(std::min(digests.size(), static_cast<size_t>(n)));
    return {};
  }
  void free_state(void* state) const noexcept override {
    --live;
    delete static_cast<Seen*>(state);
  }

  bool refuses_clone = false;
  int32_t fails_at = -1;  // the pass that does
  mutable int32_t passes = 0;
  std::function<void(const graph::Batch& batch)> after_forward;
  mutable std::atomic<int32_t> live{0};
  mutable std::atomic<int32_t> clones{0};
  mutable std::atomic<int32_t> emptied{0};

 private:
  struct Seen {
    std::vector<uint64_t> digests;
  };
  static uint64_t mix(uint64_t digest, int32_t token) {
    return (digest ^ static_cast<uint64_t>(token + 1)) * 0x9E3779B97F4A7C15U + (digest >> 31);
  }
  /// In [-1, 1).
  static float number(uint64_t digest, size_t which) {
    return static_cast<float>(2 * uniform_double(digest, 5, which) - 1);
  }
};

/// Knows a text, and is right for so many tokens of each guess; the next one is wrong, or it is the
/// last.
class RightUpTo final : public Drafter {
 public:
  RightUpTo(Tokens text, int32_t most, int32_t right)
      : text_(std::move(text)), most_(most), right_(right) {}
  int32_t max_rows() const noexcept override { return most_; }
  std::unique_ptr<DraftState> begin() override { return std::make_unique<DraftState>(); }
  void propose(std::span<DraftJob* const> jobs) override {
    for (DraftJob* const job : jobs) {
      ++proposals;
      int32_t row = 0;
      for (size_t at = job->tokens.size(); at < text_.size() && row < job->most; ++at) {
        const bool wrong = row >= right_;
        row = job->tree.add((text_[at] + (wrong ? 1 : 0)) % kFormsVocab, row);
      }
    }
  }
  int32_t proposals = 0;

 private:
  Tokens text_;
  int32_t most_;
  int32_t right_;
};

struct Place {
  std::shared_ptr<const Generator> generator;
  std::shared_ptr<Digest> digest = std::make_shared<Digest>();

  explicit Place(const CacheForm& form, const CustomStates& states,
                 std::shared_ptr<Drafter> drafter = nullptr, GeneratorOptions options = {}) {
    model::ModelTraits traits;
    traits.architecture = "digest";
    traits.vocab_size = kFormsVocab;
    traits.max_seq_len = kContext;
    traits.num_heads = traits.num_kv_heads = kHeads;
    traits.head_dim = kHeadDim;
    static const auto engine = test::cpu_engine();
    const auto model = CustomModel::create(digest, traits, states, {1, engine}).value();
    options.drafter = std::move(drafter);
    options.prefill_chunk = 5;
    set_caches(&options, form, model->layer_shapes(), engine->memory());
    generator = Generator::create(model, nullptr, options).value();
  }
};

const CustomStates kBack{.used = true, .clone = false, .truncate = true};
const CustomStates kCopied{.used = true, .clone = true, .truncate = false};
const CustomStates kBoth{.used = true, .clone = true, .truncate = true};

std::vector<CacheForm> near_forms() {
  std::vector<CacheForm> forms = all_cache_forms();
  std::erase_if(forms, [](const CacheForm& form) { return form.far; });
  return forms;
}

Said say_at(Session& session, const Tokens& prompt, int32_t n, double temperature,
            Usage* usage = nullptr) {
  CallParams params = params_of(n);
  params.sampling.temperature = temperature;
  params.sampling.repetition_penalty = 1.1;
  std::optional<GenResult> result;
  Said said;
  said.status = session.generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
  EXPECT_TRUE(said.status.ok()) << said.status.message();
  said.tokens = result->tokens;
  said.logprobs = result->logprobs;
  if (usage != nullptr) *usage = result->usage;
  return said;
}

// Facts: a recurrent state that is not taken back at some position of a guess.
TEST(StatefulDrafts, RejectedAtEachPositionShowInNoResult) {
  constexpr int32_t kSaid = 25;
  const Tokens prompt = text_of(1, 11);
  const Tokens more = text_of(2, 3);
  test::Thinned thinned(7);
  for (const CacheForm& form : near_forms()) {
    for (const double temperature : {0.0, 0.9}) {
      const Place plain(form, kBack);
      const auto wanted = plain.generator->new_session().value();
      const Said want = say_at(*wanted, prompt, kSaid, temperature);
      const Said want_more = say_at(*wanted, more, kSaid, temperature);
      for (const CustomStates& states : {kBack, kCopied, kBoth}) {
        for (int32_t most = 1; most <= 5; most += 2) {
          for (int32_t right = 0; right <= most; ++right) {
            if (thinned.skips()) continue;
            SCOPED_TRACE(testing::Message()
                         << form << ", t " << temperature << (states.clone ? ", copied" : "")
                         << (states.truncate ? ", goes back" : "") << ", " << right << " of "
                         << most);
            const auto drafter = std::make_shared<RightUpTo>(tokens_of(*wanted), most, right);
            const Place place(form, states, drafter);
            const auto session = place.generator->new_session().value();
            Usage usage;
            EXPECT_EQ(say_at(*session, prompt, kSaid, temperature, &usage), want);
            EXPECT_EQ(usage.accepted > 0, right > 0);
            EXPECT_EQ(say_at(*session, more, kSaid, temperature), want_more);
            EXPECT_EQ(tokens_of(*session), tokens_of(*wanted));
            EXPECT_GT(drafter->proposals, 2);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

// However many of a burst's tokens are taken, the session goes on from there, and so do its forks.
TEST(StatefulDrafts, LeaveASessionThatGoesOn) {
  const Tokens prompt = text_of(3, 7);
  const Tokens more = text_of(4, 2);
  for (const CustomStates& states : {kCopied, kBoth}) {
    for (int32_t events = 1; events < 14; events += test::kSanitized ? 3 : 1) {
      SCOPED_TRACE(testing::Message() << events << (states.truncate ? ", goes back" : ""));
      const Place plain({}, states);
      const Tokens text =
          join(prompt, say_at(*plain.generator->new_session().value(), prompt, 20, 0.0).tokens);
      const auto told = [&](const Place& place) {
        const auto session = place.generator->new_session().value();
        {
          const auto call = session->open({.text = {}, .tokens = prompt}, params_of(20)).value();
          for (int32_t i = 0; i < events; ++i) EXPECT_TRUE(call->next().ok());
        }
        const auto fork = session->fork().value();
        const Said first = say_at(*fork, more, 9, 0.0);
        EXPECT_EQ(say_at(*session, more, 9, 0.0), first);
        return first;
      };
      const Place drafted({}, states, std::make_shared<RightUpTo>(text, 4, 2));
      const Place right({}, states, std::make_shared<RightUpTo>(text, 4, 4));
      const Said want = told(plain);
      EXPECT_EQ(told(drafted), want);
      EXPECT_EQ(told(right), want);
      if (HasFailure()) return;
    }
  }
}

// Facts: what points to come back to cost. One copy for each pass over drafts, and only where the
// state cannot go back; and rows that were right run twice only where a guess behind them was not.
TEST(StatefulDrafts, CopyOncePerPassAtMost) {
  constexpr int32_t kSaid = 41;
  const Tokens prompt = text_of(5, 9);
  for (const CustomStates& states : {kBack, kCopied, kBoth}) {
    for (const int32_t right : {0, 2, 4}) {
      SCOPED_TRACE(testing::Message() << (states.clone ? "copied " : "")
                                      << (states.truncate ? "goes back " : "") << right);
      const Place plain({}, kBack);
      const Said want = say_at(*plain.generator->new_session().value(), prompt, kSaid, 0.0);
      const auto drafter = std::make_shared<RightUpTo>(join(prompt, want.tokens), 4, right);
      const Place place({}, states, drafter);
      int64_t rows = 0;
      int32_t passes = 0;
      place.digest->after_forward = [&](const graph::Batch& batch) {
        rows += batch.rows();
        ++passes;
      };
      const auto session = place.generator->new_session().value();
      EXPECT_EQ(say_at(*session, prompt, kSaid, 0.0), want);
      const bool copies = states.clone && !states.truncate;
      EXPECT_EQ(place.digest->clones, copies ? drafter->proposals : 0);
      // 9 rows of the prompt in two chunks bring the first token. A pass over four guesses says one
      // token more than were right; after a wrong one the next pass has its rows again, no guesses,
      // and says one.
      const int32_t each = 1 + right + (copies && right < 4 ? 1 : 0);
      const int32_t again = copies && right < 4 ? 2 + right : 0;
      const int32_t rounds = (kSaid - 1) / each;
      EXPECT_LE(std::abs(drafter->proposals - rounds), 1);
      EXPECT_LE(rows, 9 + (rounds + 1) * (5 + again));
      EXPECT_LE(passes, 2 + (rounds + 1) * (again > 0 ? 2 : 1));
    }
  }
}

// No memory for a copy: the pass runs without guesses, and the metric counts.
TEST(StatefulDrafts, WithoutMemoryForACopySayTheSame) {
  const Tokens prompt = text_of(6, 9);
  const Place plain({}, kCopied);
  const Said want = say_at(*plain.generator->new_session().value(), prompt, 20, 0.7);
  const auto drafter = std::make_shared<RightUpTo>(join(prompt, want.tokens), 4, 3);
  GeneratorOptions options;
  const auto metrics = std::make_shared<MetricsMemory>();
  options.metrics = metrics;
  const Place place({}, kCopied, drafter, options);
  const auto session = place.generator->new_session().value();
  place.digest->refuses_clone = true;
  Usage usage;
  EXPECT_EQ(say_at(*session, prompt, 20, 0.7, &usage), want);
  EXPECT_GT(place.digest->clones, 0);
  EXPECT_EQ(usage.accepted, 0);
  EXPECT_EQ(metrics->snapshot().value(metric::kDraftsFailed), place.digest->clones);
  place.digest->refuses_clone = false;
  const auto again = place.generator->new_session().value();
  EXPECT_EQ(say_at(*again, prompt, 20, 0.7, &usage), want);
  EXPECT_GT(usage.accepted, 0);
}

// A pass that fails says why, whether there were guesses, copies or neither, and the session goes
// on from where it was.
TEST(StatefulDrafts, AFailedPassSaysWhy) {
  const Tokens prompt = text_of(7, 9);
  const Place plain({}, kBack);
  const Said want = say_at(*plain.generator->new_session().value(), prompt, 20, 0.0);
  for (const CustomStates& states : {kCopied, kBoth}) {
    for (const int32_t most : {0, 3}) {  // nothing is guessed, or something
      int32_t failures = 0;
      for (int32_t pass = 1; pass < 16; ++pass) {
        SCOPED_TRACE(testing::Message() << pass << (states.truncate ? ", goes back" : ""));
        const Tokens known = most == 0 ? Tokens() : join(prompt, want.tokens);
        const Place place({}, states, std::make_shared<RightUpTo>(known, 3, 2));
        place.digest->fails_at = pass;
        const auto session = place.generator->new_session().value();
        std::optional<GenResult> result;
        CallParams params = params_of(20);
        params.sampling.temperature = 0.0;
        params.sampling.repetition_penalty = 1.1;
        const Status status =
            session->generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
        if (!status.ok()) {
          ++failures;
          EXPECT_EQ(status.code(), Code::kIo) << status.message();
          EXPECT_EQ(session->length(), 0);
          EXPECT_EQ(say_at(*session, prompt, 20, 0.0), want);
        } else {
          EXPECT_EQ(result->tokens, want.tokens);
        }
      }
      EXPECT_GT(failures, 1);  // passes over guesses are made again without
    }
  }
}

// Whose blocks are taken goes on from the start, whatever its state can do; and the caller's
// functions are not called for it before that, since the scheduler is locked.
TEST(StatefulDrafts, SessionsThatGiveWayComeBackTheSame) {
  const CacheForm tight{
      .layout = CacheForm::Layout::kPaged, .block_size = 4, .pool_blocks = 14, .patient = true};
  const Tokens prompt = text_of(8, 13);
  const Tokens other = text_of(9, 30);
  const Tokens more = text_of(10, 4);
  for (const CustomStates& states : {CustomStates{.used = true}, kBack, kCopied, kBoth}) {
    SCOPED_TRACE(testing::Message()
                 << (states.clone ? "copied " : "") << (states.truncate ? "goes back" : ""));
    const Place plain({}, states);
    const auto wanted = plain.generator->new_session().value();
    const Said want = say_at(*wanted, prompt, 20, 0.0);
    const Said want_more = say_at(*wanted, more, 9, 0.0);
    const Said want_other = say_at(*plain.generator->new_session().value(), other, 20, 0.0);
    const bool guesses = states.clone || states.truncate;
    const auto drafter = std::make_shared<RightUpTo>(tokens_of(*wanted), 4, 2);
    const Place place(tight, states, guesses ? drafter : nullptr);
    const auto session = place.generator->new_session().value();
    EXPECT_EQ(say_at(*session, prompt, 20, 0.0), want);
    const int32_t live = place.digest->live;
    {
      const auto newcomer = place.generator->new_session().value();
      EXPECT_EQ(say_at(*newcomer, other, 20, 0.0), want_other);
      EXPECT_EQ(session->cache().length(), 0);
      EXPECT_EQ(place.digest->live, live + 1);
      EXPECT_EQ(place.digest->emptied, 0);
    }
    EXPECT_EQ(place.digest->live, live);
    EXPECT_EQ(session->fork().ok(), states.clone);
    EXPECT_EQ(say_at(*session, more, 9, 0.0), want_more);
    EXPECT_EQ(tokens_of(*session), tokens_of(*wanted));

    // Two that are under way at once, of which one gives up what it has.
    const auto first = place.generator->new_session().value();
    const auto second = place.generator->new_session().value();
    CallParams params = params_of(20);
    params.sampling.temperature = 0.0;
    params.sampling.repetition_penalty = 1.1;
    auto one = first->open({.text = {}, .tokens = prompt}, params).value();
    auto two = second->open({.text = {}, .tokens = other}, params).value();
    while (one != nullptr || two != nullptr) {
      for (auto& [stream, text] : {std::tie(one, want), std::tie(two, want_other)}) {
        if (stream == nullptr || (static_cast<void>(stream->poll()), !stream->ended())) continue;
        EXPECT_EQ(stream->result().tokens, text.tokens) << stream->result().status.message();
        stream.reset();
      }
    }
  }
}

TEST(StatefulDrafts, NeedAStateThatGoesBackOrIsCopied) {
  for (const CustomStates& states : {CustomStates{.used = true}, kCopied, kBack, CustomStates{}}) {
    const Place place({}, states);
    const std::shared_ptr<const model::Model> model(std::shared_ptr<void>(),
                                                    &place.generator->model());
    DraftChoice choice;
    choice.ngram = 2;
    ModelInUse target;
    target.model = model;
    const auto made = make_drafter(choice, target, {}, {});
    const bool stuck = states.used && !states.clone && !states.truncate;
    EXPECT_EQ(made.status().code(), stuck ? Code::kUnsupported : Code::kOk);
    if (stuck) {
      EXPECT_NE(std::string(made.status().message()).find("digest"), std::string::npos);
    }
    choice.ngram = 0;
    EXPECT_TRUE(make_drafter(choice, target, {}, {}).ok());
  }
}

}  // namespace
}  // namespace gen::generate
