// SPDX-License-Identifier: Apache-2.0
// Guesses of each length from 1 to 16 tokens, chains and trees, before each end that a text may
// have by its length: the text is that of plain decoding, to the bit, for models that see
// everything and for models with windows, whose caches keep no more than these.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "generate/cache_forms.h"
#include "generate/draft/model_drafter.h"
#include "generate/knowing_drafter.h"

namespace gen::generate {
namespace {

constexpr int32_t kSaid = 34;

std::shared_ptr<const Generator> generator_over(const model::Model& model, const CacheForm& form,
                                                std::shared_ptr<Drafter> drafter = nullptr) {
  GeneratorOptions options;
  if (drafter != nullptr) {
    options.prefill_chunk = 24;
    options.window_rewind = 0;
    options.window_copies = 0;
  }
  options.drafter = std::move(drafter);
  set_caches(&options, form, model.layer_shapes(), engine::system_memory());
  return Generator::create({std::shared_ptr<void>(), &model}, nullptr, options).value();
}

GenResult told(const Generator& generator, const Tokens& prompt, int32_t n, double temperature) {
  CallParams params = params_of(n);
  params.sampling.temperature = temperature;
  params.sampling.logprobs = 1;
  std::optional<GenResult> result;
  EXPECT_TRUE(
      generator.generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result).ok());
  return std::move(*result);
}

void expect_same(const GenResult& got, const GenResult& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.logprobs, want.logprobs);
  EXPECT_EQ(got.top_ids, want.top_ids);
  EXPECT_EQ(got.top_logprobs, want.top_logprobs);
  EXPECT_EQ(got.finish_reason, want.finish_reason);
}

class DraftLengths : public testing::TestWithParam<int32_t> {};

TEST_P(DraftLengths, OneToSixteen) {
  test::TinyModelSpec spec;
  spec.context = kFormsContext;
  spec.vocab = kFormsVocab;
  spec.window = GetParam();
  const test::LoadedTiny tiny{test::TinyModel(spec)};
  const Tokens prompt = text_of(7, 9);
  for (const char* kind : {"fp32", "q4"}) {
    const CacheForm form{.kind = kind};
    const auto plain = generator_over(tiny.model(), form);
    for (const double temperature : {0.0, 0.9}) {
      const GenResult want = told(*plain, prompt, kSaid, temperature);
      for (int32_t most = 1; most <= 16; ++most) {
        for (const int32_t branches : {1, 3}) {
          SCOPED_TRACE(testing::Message() << kind << ", t " << temperature << ", " << most
                                          << " guesses, " << branches << " branches");
          const auto drafter = std::make_shared<KnowingDrafter>(
              KnowingDrafter::Options{0.8, most, branches, kFormsVocab});
          drafter->learn(join(prompt, want.tokens));
          const auto drafted = generator_over(tiny.model(), form, drafter);
          expect_same(told(*drafted, prompt, kSaid, temperature), want);
          EXPECT_GT(drafter->accepted, 0);
        }
      }
      // An end of the length behind each token, in the middle of what was guessed right.
      const auto knowing =
          std::make_shared<KnowingDrafter>(KnowingDrafter::Options{1.0, 6, 1, kFormsVocab});
      knowing->learn(join(prompt, want.tokens));
      const auto drafted = generator_over(tiny.model(), form, knowing);
      for (int32_t n = 1; n <= 16; ++n) {
        expect_same(told(*drafted, prompt, n, temperature), told(*plain, prompt, n, temperature));
      }
      // The model itself guesses, and its first layers.
      for (const bool all : {true, false}) {
        ModelDrafter::Options options;
        options.most = 4;
        options.vocab = kFormsVocab;
        options.context = kFormsContext;
        options.memory = &engine::system_memory();
        const std::shared_ptr<const model::Model> own(std::shared_ptr<void>(), &tiny.model());
        const auto model = all ? own : tiny.model().first_layers(1).value();
        const auto by_model =
            generator_over(tiny.model(), form, ModelDrafter::create(model, options).value());
        const GenResult got = told(*by_model, prompt, kSaid, temperature);
        expect_same(got, want);
        EXPECT_GT(got.usage.drafted, 10);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, DraftLengths, testing::Values(0, 5));

}  // namespace
}  // namespace gen::generate
