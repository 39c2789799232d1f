// SPDX-License-Identifier: Apache-2.0
// When the head in a model's file drafts: by itself, where it is asked for, never; and that a head
// without memory, or whose passes fail, costs drafts and nothing else.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/metrics_memory.h"
#include "generate/draft_choice.h"
#include "generate/head_world.h"
#include "generate/request/metric_names.h"
#include "generate/small_drafter.h"
#include "support/counting_allocator.h"

namespace gen::generate {
namespace {

ModelInUse in_use(std::shared_ptr<const model::Model> model) {
  ModelInUse target;
  target.model = std::move(model);
  return target;
}

bool drafts_by_head(const std::shared_ptr<Drafter>& drafter) {
  return drafter != nullptr && !drafter->taps().empty();
}

TEST(HeadChoice, DraftsByItselfUnlessAnotherDoes) {
  const ModelInUse target = in_use(head_model({}));
  const auto made = [&](const DraftChoice& choice) {
    auto drafter = make_drafter(choice, target, {}, {});
    EXPECT_TRUE(drafter.ok()) << drafter.status().message();
    return std::move(drafter).value();
  };
  DraftChoice choice;
  EXPECT_TRUE(drafts_by_head(made(choice)));
  EXPECT_EQ(made(choice)->max_rows(), kDefaultDraftLength);
  choice.heads_length = 7;
  EXPECT_EQ(made(choice)->max_rows(), 7);
  choice.ngram = 2;  // which drafts before it
  EXPECT_TRUE(drafts_by_head(made(choice)));
  choice.heads = UseHeads::kOff;
  EXPECT_FALSE(drafts_by_head(made(choice)));
  choice.ngram = 0;
  EXPECT_EQ(made(choice), nullptr);
  for (const UseHeads heads : {UseHeads::kAuto, UseHeads::kOn}) {
    choice = {};
    choice.heads = heads;
    choice.self_layers = 1;
    EXPECT_EQ(drafts_by_head(made(choice)), heads == UseHeads::kOn);
    choice.self_layers = 0;
    choice.draft.model = small_model(true);
    EXPECT_EQ(drafts_by_head(made(choice)), heads == UseHeads::kOn);
    choice.off = true;
    EXPECT_EQ(made(choice), nullptr);
  }
}

TEST(HeadChoice, IsAnErrorWhereItIsAskedForInVain) {
  const ModelInUse target = in_use(small_model(true));
  DraftChoice choice;
  EXPECT_EQ(make_drafter(choice, target, {}, {}).value(), nullptr);
  choice.heads = UseHeads::kOn;
  const auto made = make_drafter(choice, target, {}, {});
  EXPECT_EQ(made.status().code(), Code::kUnsupported);
  EXPECT_STREQ(made.status().message(), "the file of the model llama has no head that drafts");
}

// The memory is that of its caches. Prompts of both sizes: rows that wait, and rows that run
// before.
TEST(HeadChoice, WithoutMemoryDraftsLess) {
  for (const char* family : {"exaone4", "qwen35"}) {
    const auto model = head_model({family, Head::kToken, 256});
    for (const size_t prompt : {size_t{9}, size_t{80}}) {
      const auto plain = head_generator(model, {.chunk = 16});
      const GenResult want =
          answer_of(*plain->new_session().value(), text_of(1, prompt), greedy_call(150));
      int64_t most = 0;
      for (size_t n = 0; n < 6; ++n) {
        test::CountingAllocator allocator;
        allocator.fail_at = n;
        {
          const auto generator =
              head_generator(model, {.chunk = 16, .drafter = head_drafter(*model, 3, allocator)});
          const auto session = generator->new_session().value();
          const GenResult got = answer_of(*session, text_of(1, prompt), greedy_call(150));
          EXPECT_EQ(got.tokens, want.tokens);
          EXPECT_EQ(got.logprobs, want.logprobs);
          EXPECT_EQ(got.usage.accepted, got.usage.drafted);
          EXPECT_GT(got.usage.drafted, 0);  // after a rest, if it comes to that
          most = std::max(most, got.usage.drafted);
        }
        EXPECT_EQ(allocator.live_bytes, 0U);
      }
      EXPECT_GT(most, 100);
    }
  }
}

// Memory for caches is never there.
TEST(HeadChoice, WithoutAnyMemoryDraftsNothing) {
  const auto model = head_model({"exaone4", Head::kToken, 256});
  HeadDrafter::Options options;
  options.vocab = kFormsVocab;
  options.context = 256;
  int32_t asked = 0;
  options.cache_factory = [&asked](std::span<const cache::LayerShape>,
                                   int32_t) -> Result<std::unique_ptr<cache::KvCache>> {
    ++asked;
    return error(Code::kOutOfMemory, "injected");
  };
  const auto drafter = HeadDrafter::create(model->draft_head().value(), options).value();
  const auto plain = head_generator(model, {});
  const auto drafted = head_generator(model, {.drafter = drafter});
  const GenResult want = answer_of(*plain->new_session().value(), text_of(1, 9), greedy_call(60));
  const GenResult got = answer_of(*drafted->new_session().value(), text_of(1, 9), greedy_call(60));
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.logprobs, want.logprobs);
  EXPECT_EQ(got.usage.drafted, 0);
  EXPECT_LE(asked, 3);  // not at every step
}

}  // namespace
}  // namespace gen::generate
