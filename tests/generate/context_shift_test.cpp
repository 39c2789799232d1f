// SPDX-License-Identifier: Apache-2.0
// Proves what a full context drops, and what is generated then: with a fake model, whose logits are
// a function of the tokens in its cache, against a list of tokens that is cut plainly; with real
// ones against a forward pass in double precision, and against itself in other chunks, threads,
// batches and calls, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "generate/batch_run.h"
#include "generate/fake_world.h"
#include "support/loaded_tiny.h"

namespace gen::generate {
namespace {

// A session as the rules say it, without a cache.
struct Plain {
  size_t context = 0;
  size_t keep = 0;
  Tokens tokens = {};
  int64_t dropped = 0;

  void drop(size_t n) {
    const auto at = tokens.begin() + static_cast<std::ptrdiff_t>(keep);
    tokens.erase(at, at + static_cast<std::ptrdiff_t>(n));
    dropped += static_cast<int64_t>(n);
  }
  // False if the tokens cannot fit.
  bool add(const Tokens& more) {
    if (tokens.size() + more.size() > context) {
      const size_t first = std::min(keep, tokens.size());
      if (first + more.size() > context) return false;
      drop(std::max(tokens.size() + more.size() - context, (tokens.size() - first) / 2));
    }
    tokens.insert(tokens.end(), more.begin(), more.end());
    return true;
  }
  // Before the next token is chosen.
  void make_room() {
    if (tokens.size() == context) drop(std::max<size_t>(1, (context - keep) / 2));
  }
};

void make_shifting(World& world, size_t keep, bool can_shift) {
  world.options.shift_context = true;
  world.options.context_keep = static_cast<int32_t>(keep);
  world.cache_can_shift = can_shift;
}

int32_t best_after(const World& world, const Tokens& history) {
  std::vector<float> logits(static_cast<size_t>(world.model->traits().vocab_size));
  world.model->write_logits(history, logits.data());
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

TEST(ContextShift, OneGenerationFarBeyondTheContext) {
  for (const bool can_shift : {true, false}) {
    World world(20);
    make_shifting(world, 4, can_shift);
    const auto session = world.session();
    CallParams params = greedy(100);
    params.stops.ignore_eos = true;
    const Tokens prompt{0, 3, 4, 5, 6};
    const Outcome outcome = generate(*session, ids(prompt), params);
    EXPECT_EQ(outcome.result->finish_reason, FinishReason::kLength);
    Plain plain{20, 4};
    ASSERT_TRUE(plain.add(prompt));
    Tokens said;
    for (int i = 0; i < 100; ++i) {
      plain.make_room();
      said.push_back(best_after(world, plain.tokens));
      plain.tokens.push_back(said.back());
    }
    EXPECT_EQ(outcome.result->tokens, said);
    EXPECT_EQ(held(*session), plain.tokens);
    EXPECT_EQ(outcome.result->usage.dropped, plain.dropped);
    EXPECT_GT(plain.dropped, 80);
    EXPECT_EQ(world.cache->shifts, can_shift ? plain.dropped / 8 : 0);
    expect_consistent(world, *session);
  }
}

// Appends, generations of any length, prompts that fit, do not or never will, and models that fail.
TEST(ContextShift, RandomCallsEqualThePlainList) {
  int shifts = 0;
  int failures = 0;
  int refused = 0;
  for (uint64_t round = 0; round < 400; ++round) {
    uint64_t counter = 0;
    const auto below = [&](size_t n) {
      return static_cast<size_t>(uniform_double(round, 7, counter++) * static_cast<double>(n));
    };
    const size_t context = 8 + below(40);
    const size_t keep = below(context - 2);
    World world(static_cast<int32_t>(context), static_cast<int32_t>(1 + below(9)));
    make_shifting(world, keep, below(2) == 0);
    const auto session = world.session();
    Plain plain{context, keep};
    for (int call = 0; call < 8; ++call) {
      Tokens prompt;
      const size_t most = below(6) == 0 ? context + 4 : 9;
      for (size_t n = 1 + below(most); n-- > 0;) {
        prompt.push_back(static_cast<int32_t>(2 + below(kPieces.size())));
      }
      Plain expected = plain;
      const bool fits = expected.add(prompt);
      if (below(3) == 0) {
        const Status status = session->append(ids(prompt));
        ASSERT_EQ(status.ok(), fits) << round;
        ASSERT_EQ(status.code(), fits ? Code::kOk : Code::kContextFull);
        if (fits) plain = expected;
        refused += fits ? 0 : 1;
        ASSERT_EQ(held(*session), plain.tokens) << round;
        continue;
      }
      const size_t n = 1 + below(30);
      const int fail_at = below(4) == 0 ? static_cast<int>(below(30)) : -1;
      int forwards = 0;
      world.model->before_forward = [&](const graph::Batch&) -> Status {
        if (forwards++ != fail_at) return {};
        return error(Code::kModel, "injected");
      };
      CallParams params = greedy(static_cast<int32_t>(n));
      params.stops.ignore_eos = true;
      const Outcome outcome = generate(*session, ids(prompt), params);
      world.model->before_forward = nullptr;
      if (!fits) {
        ASSERT_EQ(outcome.status.code(), Code::kContextFull) << round;
        ASSERT_EQ(held(*session), plain.tokens);
        ++refused;
        continue;
      }
      if (!outcome.status.ok()) {  // what was dropped is gone, and else nothing
        const auto gone = std::min(static_cast<size_t>(outcome.result->usage.dropped),
                                   plain.tokens.size() - std::min(keep, plain.tokens.size()));
        if (gone > 0) plain.drop(gone);
        ASSERT_EQ(held(*session), plain.tokens) << round;
        expect_consistent(world, *session);
        ++failures;
        continue;
      }
      Tokens said;
      for (size_t i = 0; i < n; ++i) {
        expected.make_room();
        said.push_back(best_after(world, expected.tokens));
        expected.tokens.push_back(said.back());
      }
      ASSERT_EQ(outcome.result->tokens, said) << round << ", call " << call;
      ASSERT_EQ(outcome.result->usage.dropped, expected.dropped - plain.dropped);
      plain = expected;
      ASSERT_EQ(held(*session), plain.tokens);
      expect_consistent(world, *session);
    }
    shifts += plain.dropped > 0 ? 1 : 0;
  }
  EXPECT_GT(shifts, 200);
  EXPECT_GT(failures, 50);
  EXPECT_GT(refused, 20);
}

TEST(ContextShift, ScoringNeverDropsAnything) {
  World world(12);
  make_shifting(world, 2, true);
  const auto session = world.session();
  const Tokens prompt{0, 3, 4, 5, 6, 7, 8, 9};
  ASSERT_TRUE(session->append(ids(prompt)).ok());
  std::vector<float> scores;
  EXPECT_EQ(session->score(ids(prompt), &scores, nullptr).code(), Code::kContextFull);
  EXPECT_EQ(held(*session), prompt);
}

TEST(ContextShift, WhatIsKeptMustLeaveRoom) {
  for (const int32_t keep : {-1, 19, 100}) {
    World world(20);
    make_shifting(world, 0, true);
    world.options.context_keep = keep;
    const auto made = Generator::create(world.model, world.tokenizer, world.options);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(std::string(made.status().message()),
              "context_policy keeps " + std::to_string(keep) + " tokens, outside [0, 18]");
  }
}

// A real model, its file and all that keeps it alive.
class Tiny {
 public:
  explicit Tiny(int32_t layers, int32_t threads = 1) : tiny_(spec(layers)), bytes_(tiny_.bytes()) {
    model::LoadOptions load;
    load.engine = test::cpu_engine({.threads = threads});
    model_ = model::load_model(gguf::GgufFile::parse(bytes_).value(), load).value()->model;
  }
  static test::TinyModelSpec spec(int32_t layers) {
    test::TinyModelSpec spec;
    spec.layers = layers;
    spec.context = 24;
    return spec;
  }
  std::shared_ptr<const Generator> generator(const std::string& kv, int32_t chunk = 0) const {
    GeneratorOptions options;
    options.kv_dtype = kv;
    options.prefill_chunk = chunk;
    options.max_sequences = 4;
    options.shift_context = true;
    options.context_keep = 3;
    return Generator::create(model_, nullptr, options).value();
  }
  const test::TinyModel& exact() const { return tiny_; }

 private:
  test::TinyModel tiny_;
  std::vector<std::byte> bytes_;
  std::shared_ptr<const model::Model> model_;
};

CallParams drawing(int32_t n, uint64_t seed) {
  CallParams params;
  params.stops.max_new_tokens = n;
  params.sampling.seed = seed;
  params.sampling.logprobs = 0;
  return params;
}

const Tokens kPrompt{7, 3, 31, 12, 5, 44, 18, 3, 9};

double log_probability(const std::vector<double>& logits, size_t rows, int32_t token) {
  const size_t vocab = logits.size() / rows;
  const double* const row = logits.data() + (rows - 1) * vocab;
  const double max = *std::max_element(row, row + vocab);
  double sum = 0;
  for (size_t i = 0; i < vocab; ++i) sum += std::exp(row[i] - max);
  return row[token] - max - std::log(sum);
}

// In a model of one layer an entry depends on its own token and position alone, so turned keys must
// be as good as those of a fresh pass over what is left. Of a deeper model this is true only where
// the cache evaluates anew what stays.
TEST(ContextShift, LogitsAreThoseOfAFreshPassInDoublePrecision) {
  struct Kind {
    int32_t layers;
    const char* kv;
    double bound;
  };
  for (const Kind& kind : {Kind{1, "fp32", 2e-5}, Kind{1, "fp16", 5e-3}, Kind{2, "fp8", 0.3}}) {
    const Tiny tiny(kind.layers);
    const auto session = tiny.generator(kind.kv)->new_session().value();
    std::optional<GenResult> result;
    ASSERT_TRUE(session->generate(ids(kPrompt), drawing(80, 3), nullptr, nullptr, &result).ok());
    ASSERT_EQ(result->tokens.size(), 80U);
    Plain plain{24, 3};
    ASSERT_TRUE(plain.add(kPrompt));
    double worst = 0;
    for (size_t i = 0; i < 80; ++i) {
      plain.make_room();
      const int32_t token = result->tokens[i];
      const double exact =
          log_probability(tiny.exact().logits(plain.tokens), plain.tokens.size(), token);
      worst = std::max(worst, std::abs(static_cast<double>(result->logprobs[i]) - exact));
      plain.tokens.push_back(token);
    }
    EXPECT_LT(worst, kind.bound) << kind.kv;
    EXPECT_GT(plain.dropped, 40);
  }
}

TEST(ContextShift, ResultsDoNotDependOnChunksThreadsBatchesOrCalls) {
  for (const char* kv : {"fp32", "fp16", "q4"}) {
    std::vector<GenResult> alone;
    const Tiny tiny(2);
    std::vector<Tokens> prompts;
    for (int i = 0; i < 4; ++i) prompts.emplace_back(kPrompt.begin() + i, kPrompt.end());
    prompts[2] = Tokens(24, 6);  // fills the context before a token is chosen
    for (size_t i = 0; i < 4; ++i) {
      std::optional<GenResult> result;
      const auto session = tiny.generator(kv)->new_session().value();
      ASSERT_TRUE(
          session->generate(ids(prompts[i]), drawing(45, i), nullptr, nullptr, &result).ok());
      alone.push_back(std::move(*result));
    }
    const auto expect_equal = [&](const GenResult& got, size_t i, const char* how) {
      EXPECT_EQ(got.tokens, alone[i].tokens) << kv << ", " << how << " " << i;
      EXPECT_EQ(got.logprobs, alone[i].logprobs) << kv << ", " << how << " " << i;
      EXPECT_EQ(got.usage.dropped, alone[i].usage.dropped);
    };
    for (const int32_t threads : {1, 2}) {
      const Tiny other(2, threads);
      const auto generator = other.generator(kv, threads == 1 ? 1 : 5);
      std::vector<BatchRequest> requests;
      for (size_t i = 0; i < 4; ++i) {
        requests.push_back({ids(prompts[i]), drawing(45, i), {}});
        std::optional<GenResult> result;
        const auto session = generator->new_session().value();
        ASSERT_TRUE(
            session->generate(ids(prompts[i]), drawing(45, i), nullptr, nullptr, &result).ok());
        expect_equal(*result, i, "chunks");
      }
      const auto together = run_batch(*generator, requests, nullptr, nullptr);
      for (size_t i = 0; i < 4; ++i) expect_equal(together[i], i, "batch");
    }
    for (size_t i = 0; i < 4; ++i) {  // a prompt appended before is the prompt of the call
      const auto session = tiny.generator(kv)->new_session().value();
      ASSERT_TRUE(session->append(ids(prompts[i])).ok());
      std::optional<GenResult> result;
      ASSERT_TRUE(session->generate(ids({}), drawing(45, i), nullptr, nullptr, &result).ok());
      expect_equal(*result, i, "appended");
    }
  }
}

}  // namespace
}  // namespace gen::generate
