// SPDX-License-Identifier: Apache-2.0
// Heads on several threads, for the thread sanitizer: calls on one gen_eagle side by side, over the
// bundled model and over a custom one, and sessions of one generator that drafts with an EAGLE-3
// head, which are cut, forked and freed meanwhile. What is said is what is said alone.
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cycle_model.h"

namespace gen {
namespace {

constexpr const char* kModelFile = GEN_TEST_SOURCE_DIR "/examples/demo_model/story.gguf";
constexpr const char* kHeadFile = GEN_TEST_SOURCE_DIR "/examples/demo_model/eagle3.gguf";
constexpr const char* kTexts[] = {"Once upon a time", "The dog ran. The dog", "A little girl", "a"};
constexpr int kThreads = 4;

template <typename T, void (*Free)(T*)>
struct FreedBy {
  void operator()(T* handle) const { Free(handle); }
};
using OwnModel = std::unique_ptr<gen_model, FreedBy<gen_model, gen_model_free>>;
using OwnGenerator = std::unique_ptr<gen_generator, FreedBy<gen_generator, gen_free>>;
using OwnEagle = std::unique_ptr<gen_eagle, FreedBy<gen_eagle, gen_eagle_free>>;
using OwnSampling = std::unique_ptr<gen_sampling, FreedBy<gen_sampling, gen_sampling_free>>;
using OwnSession = std::unique_ptr<gen_session, FreedBy<gen_session, gen_session_free>>;

using Call =
    std::function<gen_status(const char* text, const gen_sampling* sampling, gen_result** result)>;

OwnSampling sampling_of(double temperature) {
  gen_sampling* made = nullptr;
  EXPECT_EQ(gen_sampling_new(&made, nullptr), GEN_OK);
  EXPECT_EQ(gen_sampling_set_max_new_tokens(made, 12, nullptr), GEN_OK);
  EXPECT_EQ(gen_sampling_set_temperature(made, temperature, nullptr), GEN_OK);
  return OwnSampling(made);
}

std::vector<int32_t> tokens_said(const Call& call, const char* text, const gen_sampling* sampling) {
  gen_result* result = nullptr;
  EXPECT_EQ(call(text, sampling, &result), GEN_OK);
  size_t n = 0;
  const int32_t* const tokens = gen_result_tokens(result, &n);
  std::vector<int32_t> all(tokens, tokens + n);
  gen_result_free(result);
  return all;
}

Call call_of(gen_generator* generator) {
  return [generator](const char* text, const gen_sampling* sampling, gen_result** result) {
    return gen_generate(generator, text, GEN_NUL_TERMINATED, sampling, result, nullptr);
  };
}
Call call_of(gen_eagle* eagle) {
  return [eagle](const char* text, const gen_sampling* sampling, gen_result** result) {
    return gen_eagle_generate(eagle, text, GEN_NUL_TERMINATED, sampling, result, nullptr);
  };
}

OwnModel bundled() {
  gen_model* made = nullptr;
  gen_error error;
  EXPECT_EQ(gen_model_load(kModelFile, nullptr, &made, &error), GEN_OK) << error.message;
  return OwnModel(made);
}

OwnGenerator generator_of(const gen_model* model, const char* eagle) {
  gen_options* options = nullptr;
  gen_generator* made = nullptr;
  gen_error error;
  EXPECT_EQ(gen_options_new(&options, &error), GEN_OK);
  EXPECT_EQ(gen_options_set(options, "draft_policy", "always", &error), GEN_OK);
  EXPECT_EQ(gen_options_set_eagle(options, eagle, &error), GEN_OK);
  EXPECT_EQ(gen_create(model, options, &made, &error), GEN_OK) << error.message;
  gen_options_free(options);
  return OwnGenerator(made);
}

/// Each thread asks every second question, while others do; `plain` has the answers.
void expect_the_same_from_all(const Call& plain, gen_eagle* eagle) {
  const Call drafting = call_of(eagle);
  const OwnSampling samplings[] = {sampling_of(0.0), sampling_of(0.7)};
  std::vector<std::vector<int32_t>> want;
  for (const OwnSampling& sampling : samplings) {
    for (const char* text : kTexts) want.push_back(tokens_said(plain, text, sampling.get()));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < want.size(); i += 2) {
        const size_t which = (i + static_cast<size_t>(t)) % want.size();
        const size_t n = std::size(kTexts);
        EXPECT_EQ(tokens_said(drafting, kTexts[which % n], samplings[which / n].get()),
                  want[which]);
        double value = 0;
        EXPECT_EQ(gen_eagle_set_adaptive(eagle, static_cast<int32_t>(i / 2) % 2, nullptr), GEN_OK);
        EXPECT_EQ(gen_eagle_stats(eagle, "drafted", &value, nullptr), GEN_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(EagleThreads, ShareOneEagleOverAModel) {
  const OwnModel model = bundled();
  const OwnGenerator plain = generator_of(model.get(), nullptr);
  gen_eagle* made = nullptr;
  ASSERT_EQ(gen_eagle_new(model.get(), kHeadFile, 4, nullptr, &made, nullptr), GEN_OK);
  const OwnEagle eagle(made);
  expect_the_same_from_all(call_of(plain.get()), eagle.get());
  double accepted = 0;
  EXPECT_EQ(gen_eagle_stats(eagle.get(), "accepted", &accepted, nullptr), GEN_OK);
  EXPECT_GT(accepted, 0);
}

TEST(EagleThreads, ShareOneEagleOverACustomModel) {
  gen_tokenizer* tokenizer = nullptr;
  ASSERT_EQ(gen_tokenizer_load(kModelFile, &tokenizer, nullptr), GEN_OK);
  struct cycle of;
  struct cycle alone;
  gen_error error;
  cycle_begin(&of, tokenizer);
  cycle_begin(&alone, tokenizer);
  const OwnModel model(cycle_model(&of, CYCLE_GOES_BACK, CYCLE, tokenizer, &error));
  const OwnModel other(cycle_model(&alone, CYCLE_GOES_BACK, CYCLE, tokenizer, &error));
  const OwnGenerator plain = generator_of(other.get(), nullptr);
  struct cycle_head head;
  cycle_head_begin(&head, &of, 1);
  gen_eagle* made = nullptr;
  ASSERT_EQ(gen_eagle_new_tensors(model.get(), &head.tensors, 4, nullptr, &made, &error), GEN_OK)
      << error.message;
  std::free(head.lm_head);
  {
    const OwnEagle eagle(made);
    expect_the_same_from_all(call_of(plain.get()), eagle.get());
    double rate = 0;
    EXPECT_EQ(gen_eagle_stats(eagle.get(), "acceptance_rate", &rate, nullptr), GEN_OK);
    EXPECT_EQ(rate, 1);
  }
  EXPECT_EQ(of.wrong, 0);
  gen_tokenizer_free(tokenizer);
}

/// Two answers of a session, with a fork and a cut between them.
std::vector<int32_t> turns_of(gen_generator* generator, const char* text,
                              const gen_sampling* sampling) {
  const auto ask = [&](gen_session* session) {
    return tokens_said(
        [session](const char* prompt, const gen_sampling* chosen, gen_result** result) {
          return gen_session_generate(session, prompt, GEN_NUL_TERMINATED, chosen, result, nullptr);
        },
        text, sampling);
  };
  gen_session* made = nullptr;
  EXPECT_EQ(gen_session_new(generator, &made, nullptr), GEN_OK);
  const OwnSession session(made);
  std::vector<int32_t> all = ask(session.get());
  EXPECT_EQ(gen_session_fork(session.get(), &made, nullptr), GEN_OK);
  const OwnSession fork(made);
  EXPECT_EQ(gen_session_truncate(session.get(), 9, nullptr), GEN_OK);
  for (gen_session* const each : {fork.get(), session.get()}) {
    const std::vector<int32_t> more = ask(each);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST(EagleThreads, SessionsShareAGeneratorWithAHead) {
  const OwnModel model = bundled();
  const OwnGenerator plain = generator_of(model.get(), nullptr);
  const OwnGenerator drafting = generator_of(model.get(), kHeadFile);
  ASSERT_EQ(gen_generator_eagle_enabled(drafting.get()), 1);
  const OwnSampling sampling = sampling_of(0.7);
  std::vector<std::vector<int32_t>> want;
  for (const char* text : kTexts) want.push_back(turns_of(plain.get(), text, sampling.get()));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < std::size(kTexts); ++t) {
    threads.emplace_back(
        [&, t] { EXPECT_EQ(turns_of(drafting.get(), kTexts[t], sampling.get()), want[t]); });
  }
  for (std::thread& thread : threads) thread.join();
  double accepted = 0;
  EXPECT_EQ(gen_generator_draft_stats(drafting.get(), "accepted", &accepted, nullptr), GEN_OK);
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace gen
