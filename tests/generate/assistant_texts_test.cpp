// SPDX-License-Identifier: Apache-2.0
// Heads that read the cache of the text, in caches of every form, on the host and on an engine
// whose memory only operations may touch. What a session with such a head says is what one without
// says, to the bit, whatever happens to it; heads that are right stay right; and a step that reads
// costs drafts, not the text, where it fails.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "generate/batch_run.h"
#include "generate/head_world.h"
#include "support/far_engine.h"

namespace gen::generate {
namespace {

/// A model and its assistant for caches of a form.
struct AssistantPlace {
  std::unique_ptr<test::LoadedTiny> loaded;
  std::vector<std::byte> bytes;
  std::shared_ptr<const model::DraftHead> head;
  engine::EngineMemory* memory = nullptr;
};

/// Compressed caches have no windows.
const AssistantPlace& assistant_place(const CacheForm& form) {
  static test::FarMemory far(size_t{4} << 30);
  static std::map<std::pair<bool, bool>, AssistantPlace> places;
  const bool windows = form.layout != CacheForm::Layout::kCompressed;
  AssistantPlace& place = places[{form.far, windows}];
  if (place.loaded != nullptr) return place;
  test::TinyModelSpec spec = assisted_spec(kFormsContext);
  if (!windows) spec.window = 0;
  const test::TinyModel tiny(spec);
  test::TinyEngineOptions options;
  if (form.far) options.engine = std::make_shared<test::FarEngine>(far);
  place.loaded = std::make_unique<test::LoadedTiny>(tiny, options);
  place.memory = form.far ? static_cast<engine::EngineMemory*>(&far) : &engine::system_memory();
  test::TinyAssistantSpec assistant;
  if (!windows) assistant.local = {0, 0};
  place.bytes = test::TinyAssistant(tiny, assistant).bytes();
  auto head = model::load_draft_head(gguf::GgufFile::parse(place.bytes).value(),
                                     place.loaded->model().head_target().value(), false, true);
  EXPECT_TRUE(head.ok()) << head.status().message();
  place.head = std::move(head).value();
  return place;
}

std::shared_ptr<const Generator> assistant_generator(const CacheForm& form, bool drafts) {
  const AssistantPlace& place = assistant_place(form);
  GeneratorOptions options;
  options.prefill_chunk = 8;
  options.max_sequences = 4;
  options.draft_policy.kind = DraftPolicy::Kind::kAlways;
  set_caches(&options, form, place.loaded->model().layer_shapes(), *place.memory);
  if (drafts) {
    options.window_rewind = 0;
    options.window_copies = 1;
    HeadDrafter::Options of;
    of.most = 4;
    of.vocab = kFormsVocab;
    of.context = kFormsContext;
    of.memory = place.memory;
    options.drafter = HeadDrafter::create(place.head, of).value();
  }
  const std::shared_ptr<const model::Model> model(std::shared_ptr<void>(), &place.loaded->model());
  auto made = Generator::create(model, nullptr, options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

CallParams assistant_call(uint32_t turn) {
  CallParams params = greedy_call(14);
  params.stops.ignore_eos = true;
  params.sampling.temperature = turn % 2 == 0 ? 0.0 : 0.8;
  params.sampling.seed = turn;
  return params;
}

void expect_said_alike(const GenResult& got, const GenResult& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.logprobs, want.logprobs);
}

TEST(AssistantTexts, AreThoseWithoutInCachesOfEveryForm) {
  for (const CacheForm& form : all_cache_forms()) {
    SCOPED_TRACE(testing::Message() << form);
    const auto plain = assistant_generator(form, false);
    const auto drafting = assistant_generator(form, true);
    std::vector<std::pair<std::shared_ptr<Session>, std::shared_ptr<Session>>> pairs;
    pairs.emplace_back(plain->new_session().value(), drafting->new_session().value());
    const auto say = [&](size_t i, const Tokens& prompt, uint32_t turn) {
      expect_said_alike(answer_of(*pairs[i].second, prompt, assistant_call(turn)),
                        answer_of(*pairs[i].first, prompt, assistant_call(turn)));
    };
    say(0, text_of(1, 20), 0);
    say(0, text_of(2, 3), 1);
    pairs.emplace_back(pairs[0].first->fork().value(), pairs[0].second->fork().value());
    say(1, text_of(3, 5), 2);
    say(0, {}, 3);
    for (auto& [first, second] : pairs) {
      const Status cut = first->truncate(30);
      EXPECT_EQ(second->truncate(30).code(), cut.code());
      EXPECT_TRUE(first->append({.text = {}, .tokens = text_of(4, 6)}).ok());
      EXPECT_TRUE(second->append({.text = {}, .tokens = text_of(4, 6)}).ok());
    }
    say(0, {}, 4);
    say(1, text_of(5, 2), 5);
    std::vector<BatchRequest> requests(4);
    std::vector<Tokens> prompts;
    for (uint32_t i = 0; i < 4; ++i) prompts.push_back(text_of(i, 5 + 9 * i));
    for (uint32_t i = 0; i < 4; ++i) {
      requests[i].prompt.tokens = prompts[i];
      requests[i].params = assistant_call(i);
    }
    const auto want = run_batch(*plain, requests, nullptr, nullptr);
    const auto got = run_batch(*drafting, requests, nullptr, nullptr);
    for (size_t i = 0; i < 4; ++i) expect_said_alike(got[i], want[i]);
    EXPECT_GT(drafting->draft_use().drafted, 80);
  }
}

// Other sessions run, cut and fork their caches in the same pool meanwhile.
TEST(AssistantTexts, AreThoseWithoutInThreads) {
  const CacheForm form = {
      .layout = CacheForm::Layout::kPaged, .block_size = 8, .prefix_blocks = 40};
  const auto plain = assistant_generator(form, false);
  const auto drafting = assistant_generator(form, true);
  constexpr uint32_t kThreads = 6;
  const auto talk = [](const Generator& generator, uint32_t seed) {
    std::vector<Tokens> all;
    auto session = generator.new_session().value();
    for (uint32_t turn = 0; turn < 6; ++turn) {
      all.push_back(answer_of(*session, text_of(seed, 1 + turn), assistant_call(turn)).tokens);
      if (turn == 2) session = session->fork().value();
      if (turn == 3 && !session->truncate(11).ok()) all.clear();
    }
    return all;
  };
  std::vector<std::vector<Tokens>> got(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { got[i] = talk(*drafting, i); });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t i = 0; i < kThreads; ++i) EXPECT_EQ(got[i], talk(*plain, i));
}

/// Lends its cache for reading, or fails to.
class Unreadable final : public Drafter {
 public:
  explicit Unreadable(std::shared_ptr<HeadDrafter> drafter) : drafter_(std::move(drafter)) {}
  [[nodiscard]] int32_t max_rows() const noexcept override { return drafter_->max_rows(); }
  std::unique_ptr<DraftState> begin() override { return drafter_->begin(); }
  [[nodiscard]] std::span<const int32_t> taps() const noexcept override { return drafter_->taps(); }
  void observe(std::span<const ObservedRows> rows) override { drafter_->observe(rows); }
  void propose(std::span<DraftJob* const> jobs) override {
    for (DraftJob* const job : jobs) {
      EXPECT_NE(job->cache, nullptr);
      EXPECT_EQ(job->cache->length() + 1, static_cast<int32_t>(job->tokens.size()));
      job->cache = nullptr;
    }
    drafter_->propose(jobs);
    for (const DraftJob* const job : jobs) EXPECT_EQ(job->tree.rows(), 1);
  }

 private:
  const std::shared_ptr<HeadDrafter> drafter_;
};

TEST(AssistantTexts, AreThoseWithoutWhereNothingCanBeRead) {
  const auto model = head_model({"gemma4", Head::kToken, kFormsContext});
  const auto generator =
      head_generator(model, {.drafter = std::make_shared<Unreadable>(head_drafter(*model, 3))});
  const GenResult result =
      answer_of(*generator->new_session().value(), text_of(1, 9), greedy_call(20));
  const auto plain = head_generator(model, {});
  EXPECT_EQ(result.tokens,
            answer_of(*plain->new_session().value(), text_of(1, 9), greedy_call(20)).tokens);
  EXPECT_EQ(result.usage.drafted, 0);
}

}  // namespace
}  // namespace gen::generate
