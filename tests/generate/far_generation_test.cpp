// SPDX-License-Identifier: Apache-2.0
// Proves that sessions never look into their caches' memory while they generate: on an engine whose
// memory nobody may touch, in steps of many sessions, with chunked prompts and blocks that are
// taken away and given back, they say what sessions on the CPU engine say.
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "base/metrics_memory.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "engine/memory/host_memory.h"
#include "generate/batch_run.h"
#include "generate/knowing_drafter.h"
#include "generate/loop/generator.h"
#include "generate/request/metric_names.h"
#include "generate/said.h"
#include "grammar/grammar.h"
#include "model/loader.h"
#include "support/counting_new.h"
#include "support/fake_model.h"
#include "support/far_engine.h"
#include "support/tiny_model.h"

namespace gen::generate {
namespace {

constexpr float kEndless = std::numeric_limits<float>::infinity();

/// One model on one engine, and generators over caches in one memory.
class Side {
 public:
  Side(std::shared_ptr<engine::Engine> engine, engine::EngineMemory& caches,
       const test::TinyModelSpec& of = spec())
      : tiny_(of), bytes_(tiny_.bytes()), caches_(caches) {
    model::LoadOptions load;
    load.engine = std::move(engine);
    model_ = model::load_model(gguf::GgufFile::parse(bytes_).value(), load).value()->model;
  }
  static test::TinyModelSpec spec() {
    test::TinyModelSpec spec;
    spec.context = 128;
    return spec;
  }
  /// With blocks from a common pool if there are any.
  std::shared_ptr<const Generator> generator(const char* kind, size_t blocks) {
    GeneratorOptions options;
    options.kv_dtype = kind;
    options.prefill_chunk = 16;
    options.max_sequences = 4;
    options.memory = &caches_;
    if (blocks > 0) {
      auto pool = cache::CachePool::create(kind, model_->layer_shapes(), 16, 1, caches_).value();
      std::vector<cache::Block*> taken(pool->blocks().available() - blocks);
      EXPECT_TRUE(pool->blocks().allocate(taken).ok());
      options.cache_factory = [pool](std::span<const cache::LayerShape>, int32_t capacity) {
        return cache::make_paged_cache(pool, capacity);
      };
    }
    return generator(options);
  }
  /// Chains are as long as if a step took no time, but where the options have a clock.
  std::shared_ptr<const Generator> generator(
      GeneratorOptions options, std::shared_ptr<const tokenizer::Tokenizer> tokenizer = nullptr) {
    if (!options.draft_policy.clock) options.draft_policy.clock = [] { return 0.0; };
    return Generator::create(model_, std::move(tokenizer), options).value();
  }
  engine::EngineMemory& caches() { return caches_; }

 private:
  test::TinyModel tiny_;
  std::vector<std::byte> bytes_;
  engine::EngineMemory& caches_;
  std::shared_ptr<const model::Model> model_;
};

/// What six requests say, and what the first session says next.
std::vector<Tokens> conversation(Side& side, const char* kind, size_t blocks) {
  const auto generator = side.generator(kind, blocks);
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < 6; ++i) prompts.push_back(text_of(i, 20 + 9 * i));
  std::vector<BatchRequest> requests(prompts.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt.tokens = prompts[i];
    requests[i].params = params_of(20);
  }
  std::vector<Tokens> said;
  for (const GenResult& result : run_batch(*generator, requests, nullptr, nullptr)) {
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    said.push_back(result.tokens);
  }
  const auto session = generator->new_session().value();
  said.push_back(say(*session, prompts[0], 10).tokens);
  EXPECT_TRUE(session->truncate(25).ok());
  said.push_back(say(*session, prompts[1], 10).tokens);
  return said;
}

std::vector<Tokens> drawn_prompts() {
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < 8; ++i) prompts.push_back(text_of(i, 24));
  return prompts;
}

/// What calls that draw say, one by one and together; `drafter` may be null.
std::vector<Tokens> draws(Side& side, std::shared_ptr<Drafter> drafter) {
  GeneratorOptions options;
  options.max_sequences = 4;
  options.memory = &side.caches();
  options.drafter = std::move(drafter);
  const auto generator = side.generator(options);
  std::vector<BatchRequest> requests(8);
  const std::vector<Tokens> prompts = drawn_prompts();
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt.tokens = prompts[i];
    CallParams& params = requests[i].params;
    params = params_of(24);
    params.sampling.seed = i;
    params.sampling.logprobs = -1;
    params.sampling.temperature = i == 7 ? 0.0 : 0.2 + 0.2 * static_cast<double>(i);
    params.sampling.top_k = std::array{1, 5, 40, 7, 0, 6, 8, 0}[i];
    params.sampling.top_p = i % 2 == 0 ? 0.9 : 1.0;
    params.sampling.min_p = i % 3 == 0 ? 0.02 : 0.0;
  }
  std::vector<Tokens> said;
  for (const GenResult& result : run_batch(*generator, requests, nullptr, nullptr)) {
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    said.push_back(result.tokens);
  }
  for (const BatchRequest& request : requests) {
    std::optional<GenResult> result;
    const auto session = generator->new_session().value();
    EXPECT_TRUE(session->generate(request.prompt, request.params, nullptr, nullptr, &result).ok());
    said.push_back(result->tokens);
  }
  return said;
}

// Where only the largest logits come from afar.
TEST(FarGeneration, DrawsTheSame) {
  test::TinyModelSpec spec = Side::spec();
  spec.vocab = 300;
  // Of equal logits more may survive top-k than come: never, in some rows, in all.
  for (const int32_t even : {0, 285, 300}) {
    spec.even = even;
    test::FarMemory memory;
    Side near(test::cpu_engine({.threads = 2}), engine::system_memory(), spec);
    Side far(std::make_shared<test::FarEngine>(memory, 2), memory, spec);
    const std::vector<Tokens> want = draws(near, nullptr);
    ASSERT_EQ(want.size(), 16U);
    EXPECT_EQ(draws(far, nullptr), want) << even;
    const auto drafter = std::make_shared<KnowingDrafter>(
        KnowingDrafter::Options{.p = 0.8, .rows = 4, .vocab = spec.vocab});
    const std::vector<Tokens> prompts = drawn_prompts();
    for (size_t i = 0; i < prompts.size(); ++i) drafter->learn(join(prompts[i], want[i]));
    EXPECT_EQ(draws(far, drafter), want) << even;
    EXPECT_GT(drafter->accepted, even < spec.vocab ? 100 : 0);
  }
}

constexpr int32_t kRuledVocab = 300;

/// Of letters from a to p, alone and two by two, and some that nobody can say.
std::shared_ptr<const tokenizer::Tokenizer> letters() {
  std::vector<std::string> pieces;
  for (char a = 'a'; a <= 'p'; ++a) {
    pieces.emplace_back(1, a);
    for (char b = 'a'; b <= 'p'; ++b) pieces.push_back({a, b});
  }
  while (pieces.size() + 2 < kRuledVocab) pieces.push_back("~" + std::to_string(pieces.size()));
  return std::make_shared<test::FakeTokenizer>(std::move(pieces));
}

/// A call that changes logits or has a mask, in the way of its number.
CallParams ruled_params(uint32_t i) {
  CallParams params = params_of(24);
  sampling::SamplingParams& sampling = params.sampling;
  sampling.logprobs = -1;
  sampling.seed = i;
  sampling.temperature = i % 3 == 0 ? 0.0 : 1.2;
  sampling.top_k = i % 3 == 1 ? 20 : 0;
  sampling.min_p = i % 3 == 2 ? 0.5 : 0.0;
  if (i % 2 == 0) {
    sampling.repetition_penalty = 1.4;
    sampling.penalize_prompt = i % 4 == 0;
  }
  if (i % 5 == 1) sampling.frequency_penalty = 0.8;
  if (i % 7 == 0) sampling.dry_multiplier = 0.9;
  if (i % 4 == 1) {
    EXPECT_TRUE(sampling.set_logit_bias(7 + static_cast<int32_t>(i), 6.0F).ok());
    EXPECT_TRUE(sampling.set_logit_bias(90, -kEndless).ok());
  }
  if (i % 6 == 5) {
    params.stops.min_new_tokens = 9;
    for (int32_t token = 0; token < 30; ++token) {
      EXPECT_TRUE(params.stops.add_token(7 * token).ok());
    }
  }
  const char* const pattern =
      std::array{"([a-h]{1,3}p)+", "(abc|de|k){20,40}", "[c-n]*", "o+"}[i % 4];
  if (i % 2 == 1) params.grammar = grammar::Grammar::from_regex(pattern).value();
  params.stops.fit_grammar = i % 8 == 3;
  return params;
}

/// What such calls say, together and one by one.
std::vector<Tokens> ruled(Side& side, const std::shared_ptr<Metrics>& metrics) {
  GeneratorOptions options;
  options.max_sequences = 4;
  options.memory = &side.caches();
  options.metrics = metrics;
  const auto generator = side.generator(options, letters());
  std::vector<BatchRequest> requests(24);
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < requests.size(); ++i) prompts.push_back(text_of(i, 10 + i));
  for (uint32_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt.tokens = prompts[i];
    requests[i].params = ruled_params(i);
  }
  std::vector<Tokens> said;
  const auto add = [&](const GenResult& result) {
    said.push_back(result.tokens);
    said.back().push_back(static_cast<int32_t>(result.finish_reason));
    said.back().push_back(static_cast<int32_t>(result.status.code()));
  };
  for (const GenResult& result : run_batch(*generator, requests, nullptr, nullptr)) add(result);
  for (const BatchRequest& request : requests) {
    std::optional<GenResult> result;
    const auto session = generator->new_session().value();
    static_cast<void>(session->generate(request.prompt, request.params, nullptr, nullptr, &result));
    add(*result);
  }
  return said;
}

// Masks go up and tokens whose logits are changed stand aside: rows come in whole only where that
// does not decide.
TEST(FarGeneration, RulesOfCallsActOnTheSame) {
  test::TinyModelSpec spec = Side::spec();
  spec.vocab = kRuledVocab;
  for (const int32_t even : {0, 285}) {
    spec.even = even;
    test::FarMemory memory;
    Side near(test::cpu_engine({.threads = 2}), engine::system_memory(), spec);
    const auto engine = std::make_shared<test::FarEngine>(memory, 2);
    Side far(engine, memory, spec);
    const std::vector<Tokens> want = ruled(near, nullptr);
    ASSERT_EQ(want.size(), 48U);
    size_t tokens = 0;
    for (const Tokens& each : want) tokens += each.size() - 2;
    EXPECT_GT(tokens, 700U);
    engine->counted_bytes = kRuledVocab * sizeof(float);
    const auto metrics = std::make_shared<MetricsMemory>();
    EXPECT_EQ(ruled(far, metrics), want) << even;
    const auto again = static_cast<size_t>(metrics->snapshot().value(metric::kRowsAgain));
    // Also where a call changes many tokens; several of a step are one download.
    EXPECT_LT(engine->counted_downloads, even == 0 ? tokens / 20 : tokens / 2);
    EXPECT_LT(again, even == 0 ? tokens / 20 : tokens / 2);
    EXPECT_TRUE(again > 0 || even == 0);
  }
}

/// Calls that report log-probabilities or cut by what all tokens weigh, and what they say.
std::vector<Said> weighed(Side& side, const std::shared_ptr<Metrics>& metrics) {
  GeneratorOptions options;
  options.max_sequences = 4;
  options.memory = &side.caches();
  options.metrics = metrics;
  const auto generator = side.generator(options);
  std::vector<BatchRequest> requests(12);
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < requests.size(); ++i) prompts.push_back(text_of(i, 10 + i));
  for (uint32_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt.tokens = prompts[i];
    CallParams& params = requests[i].params;
    params = params_of(20);
    params.sampling.seed = i;
    params.sampling.logprobs = std::array{0, 1, 7, -1}[i % 4];
    params.sampling.temperature = i % 3 == 0 ? 0.0 : i % 4 == 3 ? 0.4 : 1.0;
    params.sampling.top_p = i % 6 == 1 ? 0.03 : 1.0;
    params.sampling.min_p = i % 3 == 2 ? 0.6 : 0.0;
  }
  std::vector<Said> said;
  const auto add = [&](const GenResult& result) {
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    said.push_back({result.status, result.tokens, result.logprobs});
    Said& last = said.back();
    last.tokens.insert(last.tokens.end(), result.top_ids.begin(), result.top_ids.end());
    last.logprobs.insert(last.logprobs.end(), result.top_logprobs.begin(),
                         result.top_logprobs.end());
  };
  for (const GenResult& result : run_batch(*generator, requests, nullptr, nullptr)) add(result);
  for (const BatchRequest& request : requests) {
    std::optional<GenResult> result;
    const auto session = generator->new_session().value();
    EXPECT_TRUE(session->generate(request.prompt, request.params, nullptr, nullptr, &result).ok());
    add(*result);
  }
  return said;
}

TEST(FarGeneration, WeighsTheSame) {
  test::TinyModelSpec spec = Side::spec();
  spec.vocab = 3000;  // of several parts
  test::FarMemory memory;
  Side near(test::cpu_engine({.threads = 2}), engine::system_memory(), spec);
  const auto engine = std::make_shared<test::FarEngine>(memory, 2);
  Side far(engine, memory, spec);
  const std::vector<Said> want = weighed(near, nullptr);
  ASSERT_EQ(want.size(), 24U);
  engine->counted_bytes = static_cast<size_t>(spec.vocab) * sizeof(float);
  const auto metrics = std::make_shared<MetricsMemory>();
  EXPECT_EQ(weighed(far, metrics), want);
  const auto again = static_cast<size_t>(metrics->snapshot().value(metric::kRowsAgain));
  EXPECT_LE(engine->counted_downloads, again);
  EXPECT_LT(again, 24U * 20 / 10);
}

/// Stops a call after some tokens.
int32_t stop_after(void* user, const Event& event) {
  auto* const left = static_cast<int32_t*>(user);
  return !event.done && --*left == 0 ? 7 : 0;
}

/// What calls say that take the best tokens, together and one by one, with ends anywhere.
std::vector<Tokens> greedy(Side& side, const char* kind, size_t blocks) {
  const auto generator = side.generator(kind, blocks);
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < 6; ++i) prompts.push_back(text_of(i, 20 + 7 * i));
  std::vector<BatchRequest> requests(prompts.size());
  for (uint32_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt.tokens = prompts[i];
    CallParams& params = requests[i].params;
    params = params_of(9 + static_cast<int32_t>(5 * i));
    params.sampling.logprobs = -1;
    params.sampling.temperature = 0.0;
    if (i % 2 == 1) {
      EXPECT_TRUE(params.stops.add_token(static_cast<int32_t>(3 + i)).ok());
    }
  }
  std::vector<Tokens> said;
  for (const GenResult& result : run_batch(*generator, requests, nullptr, nullptr)) {
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    said.push_back(result.tokens);
  }
  const auto session = generator->new_session().value();
  for (int32_t i = 0; i < 4; ++i) {
    std::optional<GenResult> result;
    int32_t left = 3 + i;  // in a chain
    const BatchRequest& request = requests[static_cast<size_t>(i)];
    Prompt prompt;
    prompt.tokens = std::span(request.prompt.tokens).first(4);
    static_cast<void>(session->generate(prompt, request.params, stop_after, &left, &result));
    said.push_back(result->tokens);
    said.push_back({result->usage.prompt, result->usage.completion, session->length()});
    said.push_back(session->tokens().value());
  }
  EXPECT_TRUE(session->truncate(30).ok());
  said.push_back(say(*session, prompts[1], 10).tokens);
  return said;
}

// Rows that take the best token go on for some tokens before the host looks at them.
TEST(FarGeneration, GoesOnByItself) {
  test::FarMemory memory;
  Side near(test::cpu_engine({.threads = 2}), engine::system_memory());
  for (const bool pads : {false, true}) {
    const auto engine = std::make_shared<test::FarEngine>(memory, 2);
    engine->pads = pads;
    Side far(engine, memory);
    for (const char* kind : {"fp32", "fp16", "fp8", "q4"}) {
      for (const size_t blocks : {size_t{0}, size_t{12}}) {
        const std::vector<Tokens> want = greedy(near, kind, blocks);
        EXPECT_EQ(greedy(far, kind, blocks), want) << kind << ", " << blocks;
      }
    }
    // One text: a prompt of two chunks, and fewer waits than tokens.
    const auto session = far.generator("fp32", 0)->new_session().value();
    CallParams params = params_of(41);
    params.sampling.logprobs = -1;
    params.sampling.temperature = 0.0;
    const Tokens prompt = text_of(1, 32);
    std::optional<GenResult> result;
    const size_t waited = engine->finishes;
    EXPECT_TRUE(session->generate({.tokens = prompt}, params, nullptr, nullptr, &result).ok());
    EXPECT_EQ(result->tokens.size(), 41U);
    EXPECT_EQ(engine->finishes - waited, 12U);  // 2 chunks, the first token with them; 40 by fours
  }
}

// A chain is as long as there is time for, by what a row of the last one took.
TEST(FarGeneration, GoesOnForSomeTime) {
  struct Case {
    double row_seconds;
    size_t steps;  // of 40 tokens; the first has four
  };
  test::FarMemory memory;
  for (const Case& of : {Case{0.001, 10}, Case{0.0024, 10}, Case{0.003, 13}, Case{0.004, 19},
                         Case{0.006, 37}, Case{0.1, 37}}) {
    SCOPED_TRACE(of.row_seconds);
    const auto engine = std::make_shared<test::FarEngine>(memory, 2);
    Side far(engine, memory);
    GeneratorOptions options;
    options.prefill_chunk = 16;
    options.memory = &far.caches();
    const auto metrics = std::make_shared<MetricsMemory>();
    options.metrics = metrics;
    options.draft_policy.clock = [engine, of] {
      return of.row_seconds * static_cast<double>(engine->passes);
    };
    const auto session = far.generator(options)->new_session().value();
    CallParams params = params_of(41);
    params.sampling.logprobs = -1;
    params.sampling.temperature = 0.0;
    const Tokens prompt = text_of(1, 32);
    std::optional<GenResult> result;
    const auto before = metrics->snapshot().value(metric::kSteps);
    EXPECT_TRUE(session->generate({.tokens = prompt}, params, nullptr, nullptr, &result).ok());
    EXPECT_EQ(result->tokens.size(), 41U);
    EXPECT_EQ(metrics->snapshot().value(metric::kSteps) - before,
              static_cast<double>(2 + of.steps));
  }
}

// A chain for which there is no memory is no guess that has failed: its step is a plain one, and no
// more allocations end a call than where a tracer keeps chains away.
TEST(FarGeneration, GoesOnStepByStepWithoutMemory) {
  struct Tracer final : engine::Tracer {
    void record(const engine::TraceEvent&) noexcept override {}
  };
  test::FarMemory memory;
  Side far(std::make_shared<test::FarEngine>(memory, 2), memory);
  const Tokens prompt = text_of(2, 1);  // a step of one row, so that one of a chain needs more room
  CallParams params = params_of(5);  // and one chain behind it, so no step is a plain one at first
  params.sampling.logprobs = -1;
  params.sampling.temperature = 0.0;
  Tokens want;
  int32_t ended[2] = {};
  for (const bool chains : {false, true}) {
    bool reached = true;
    for (size_t at = 0; reached; ++at) {
      GeneratorOptions options;
      options.memory = &far.caches();
      const auto metrics = std::make_shared<MetricsMemory>();
      options.metrics = metrics;
      if (!chains) options.tracer = std::make_shared<Tracer>();
      const auto session = far.generator(options)->new_session().value();
      auto call = session->open({.text = {}, .tokens = prompt}, params);
      ASSERT_TRUE(call.ok());
      ASSERT_TRUE((*call)->next().ok());
      const size_t before = test::news;
      test::fail_new_at = before + at;
      while (!(*call)->ended() && (*call)->next().ok()) {
      }
      test::fail_new_at = ~size_t{0};
      reached = test::news > before + at;
      const GenResult& result = (*call)->result();
      if (!reached && want.empty()) want = result.tokens;
      if (!result.status.ok()) {
        EXPECT_EQ(result.status.code(), Code::kOutOfMemory) << at;
        ++ended[chains ? 1 : 0];
      } else if (!want.empty()) {
        EXPECT_EQ(result.tokens, want) << at;
      }
      EXPECT_EQ(metrics->snapshot().value(metric::kDraftsFailed), 0) << at;
    }
  }
  EXPECT_LE(ended[1], ended[0]);
  EXPECT_EQ(ended[1], 0);
}

// With many texts, too: none of them asks for so many rows that others get none.
TEST(FarGeneration, ManyGoOnByThemselves) {
  constexpr size_t kTexts = 24;
  test::FarMemory memory;
  const auto engine = std::make_shared<test::FarEngine>(memory, 2);
  Side near(test::cpu_engine({.threads = 2}), engine::system_memory());
  Side far(engine, memory);
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < kTexts; ++i) prompts.push_back(text_of(i, 1));
  std::vector<Tokens> said[2];
  size_t waits = 0;
  for (Side* const side : {&near, &far}) {
    GeneratorOptions options;
    options.max_sequences = kTexts;
    options.memory = &side->caches();
    const auto generator = side->generator(options);
    std::vector<BatchRequest> requests(kTexts);
    for (size_t i = 0; i < kTexts; ++i) {
      requests[i].prompt.tokens = prompts[i];
      requests[i].params = params_of(33);
      requests[i].params.sampling.logprobs = -1;
      requests[i].params.sampling.temperature = 0.0;
    }
    const size_t before = engine->finishes;
    for (const GenResult& result : run_batch(*generator, requests, nullptr, nullptr)) {
      EXPECT_TRUE(result.status.ok()) << result.status.message();
      said[side == &far ? 1 : 0].push_back(result.tokens);
    }
    waits = engine->finishes - before;
  }
  EXPECT_EQ(said[1], said[0]);
  EXPECT_LE(waits, size_t{33 / 4 + 4});  // some steps until all are at the same place
}

TEST(FarGeneration, SaysTheSame) {
  test::FarMemory memory;
  Side near(test::cpu_engine({.threads = 2}), engine::system_memory());
  Side far(std::make_shared<test::FarEngine>(memory, 2), memory);
  for (const char* kind : {"fp32", "fp16", "fp8", "q4"}) {
    const std::vector<Tokens> want = conversation(near, kind, 0);
    ASSERT_EQ(want.size(), 8U);
    EXPECT_EQ(conversation(far, kind, 0), want) << kind;
    // Twelve blocks are too few for four sessions: some give theirs up and go on later.
    EXPECT_EQ(conversation(far, kind, 12), want) << kind;
  }
}

}  // namespace
}  // namespace gen::generate
